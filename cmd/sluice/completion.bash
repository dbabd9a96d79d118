
# Sets cur, words and cword as _get_comp_words_by_ref -n =: does: bash takes words
# apart at = and :, which belong to flags and names.
__sluice_words()
{
    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@"
        return
    fi
    local line=$COMP_LINE blank word before="" i at=0 over
    cword=0
    cur=""
    words=()
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        blank=${line%%[^[:space:]]*}
        line=${line:${#blank}+${#word}}
        at=$((at + ${#blank} + ${#word}))
        if [[ -z $blank && $i -gt 0 && ( $word == [=:]* || $before == *[=:] ) ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        before=$word
        if ((i == COMP_CWORD)); then
            cword=$((${#words[@]} - 1))
            cur=${words[cword]}
            over=$((at - COMP_POINT)) # what stands behind the cursor
            if ((over > 0 && over <= ${#cur})); then
                cur=${cur:0:${#cur}-over}
            fi
        fi
    done
}

# Proposes files. Without _filedir it leaves them to bash, which proposes files where
# there is nothing else.
__sluice_files()
{
    if declare -F _filedir >/dev/null 2>&1; then
        _filedir "$@"
    fi
}
