# find_package(qat): qat_add_model makes a library of a model, as C source; qat::infer is the engine that reads .qm files.
#
#     find_package(qat REQUIRED)
#     qat_add_model(digits model.qm)                    # of digits.c and digits.h, which qat-export writes
#     target_link_libraries(firmware PRIVATE digits)    # digits_run(..), digits_self_test()
#
# The model is a .qm or a checkpoint. More arguments are options of qat-export:
#
#     qat_add_model(digits model.qm --section .weights --no-self-test)

get_filename_component(_qat_libdir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
# in lib, or in lib/TARGET
set(_qat_prefixes "${_qat_libdir}/.." "${_qat_libdir}/../..")
set(_qat_bins ${_qat_prefixes})
list(TRANSFORM _qat_bins APPEND "/bin")
find_program(QAT_EXPORT qat-export HINTS ${_qat_bins} NO_CMAKE_FIND_ROOT_PATH)

function(qat_add_model target model)
    if(NOT QAT_EXPORT)
        message(FATAL_ERROR "qat_add_model: qat-export is not found; -DQAT_EXPORT=.. says where it is")
    endif()
    get_filename_component(model "${model}" ABSOLUTE)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.model")
    file(MAKE_DIRECTORY "${folder}")
    add_custom_command(
        OUTPUT "${folder}/${target}.c" "${folder}/${target}.h"
        COMMAND "${QAT_EXPORT}" "${model}" "${folder}/${target}.c" ${ARGN}
        DEPENDS "${model}" "${QAT_EXPORT}"
        COMMENT "${target}.c: a network as C source"
        VERBATIM)
    add_library(${target} STATIC "${folder}/${target}.c" "${folder}/${target}.h")
    target_include_directories(${target} PUBLIC "${folder}")
endfunction()

if(NOT TARGET qat::infer)
    find_library(QAT_INFER_LIBRARY NAMES libqatinfer.a qatinfer HINTS "${_qat_libdir}")
    set(_qat_includes ${_qat_prefixes})
    list(TRANSFORM _qat_includes APPEND "/include")
    find_path(QAT_INCLUDE_DIR qat/infer.h HINTS ${_qat_includes})
    if(QAT_INFER_LIBRARY AND QAT_INCLUDE_DIR)
        add_library(qat::infer UNKNOWN IMPORTED)
        set_target_properties(qat::infer PROPERTIES
            IMPORTED_LOCATION "${QAT_INFER_LIBRARY}"
            INTERFACE_INCLUDE_DIRECTORIES "${QAT_INCLUDE_DIR}"
            INTERFACE_LINK_LIBRARIES "$<$<PLATFORM_ID:Linux>:pthread>")
    endif()
endif()
