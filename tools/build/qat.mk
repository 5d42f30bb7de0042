# Models as C source in a Makefile:
#
#     include qat.mk
#     firmware: main.o digits.o                      # digits.c and digits.h are written from digits.qm
#     main.o: digits.h
#
# QAT_EXPORT says where qat-export is, QAT_EXPORT_FLAGS its options: --section .weights, for example.
QAT_EXPORT ?= qat-export

%.c %.h: %.qm
	$(QAT_EXPORT) $< $*.c $(QAT_EXPORT_FLAGS)
