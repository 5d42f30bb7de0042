#!/usr/bin/env bash
# locales.sh HOST_LOCALE: a host program with the locale of a country trains, resumes, exports and reads with
# libqat. Every file is the same, byte for byte, as in the locale "C". Eight locales: decimal commas, a decimal
# point of two bytes, a Turkish i, other digits, encodings of one byte and of several. They are made by localedef
# in a temporary folder.
set -u
host=$(realpath "$1")
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

# statements of the library that would format or parse a real number by the locale
(cd "$QAT_SOURCE_ROOT" && awk '
    FNR == 1 { text = "" }
    { text = text $0 }
    /[;{}]$/ {
        gsub("%%", "", text)
        if (text ~ /[^_a-z](strtod|strtof|strtold|atof)\(/ ||
            text ~ /[^_a-z]v?s?n?printf\(.*%[-+ #0-9.*]*[efgaEFGA]/)
            print FILENAME ":" FNR ": " text
        text = ""
    }' $(find lib datasets -name '*.[ch]' ! -path lib/base/number.c)) >found.txt
if [ ! -s found.txt ]; then ok "real numbers become text in lib/base/number.c only"; else
    not_ok "real numbers become text by the locale: $(head -n 3 found.txt)"
fi

if ! command -v localedef >/dev/null || [ ! -d /usr/share/i18n/locales ]; then
    echo "SKIP locales: no localedef, or no definitions of locales (Debian package locales)"
    exit $failed
fi
mkdir C locale
check "the locale C" "$host" C C
for name in de_DE.UTF-8 fr_FR.ISO-8859-1 tr_TR.ISO-8859-9 ps_AF.UTF-8 ru_RU.KOI8-R pt_BR.UTF-8 fa_IR.UTF-8 ja_JP.EUC-JP; do
    localedef -i "${name%%.*}" -f "${name#*.}" "locale/$name" >localedef.txt 2>&1
    mkdir "$name"
    LOCPATH=$work/locale "$host" "$name" "$name" >half.txt 2>err.txt
    case $? in
    0) ok "$name (0.5 is $(head -n 1 half.txt) there)" ;;
    77)
        echo "SKIP locale $name: localedef could not make it"
        continue
        ;;
    *)
        not_ok "$name: $(tail -n 1 err.txt)"
        continue
        ;;
    esac
    rm -f C/run/times.csv "$name/run/times.csv"
    if diff -rq C "$name" >diff.txt; then ok "$name: the same files as in C"; else not_ok "$name: $(head -n 1 diff.txt)"; fi
done
exit $failed
