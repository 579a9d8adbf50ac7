# bash completion for rdmarun: its options, then a program, then whatever that program completes.
_rdmarun() {
  local word=${COMP_WORDS[COMP_CWORD]} i=1
  local rows options valued
  # "-x, --env VAR=VALUE" of each line of the help; an option that takes a value is followed by a word in capitals.
  rows=$(rdmarun --help 2>/dev/null | sed -nE 's/^  (-[^ ]+(, -[^ ]+)*( [A-Z=:]+)?)(  .*)?$/\1/p')
  options=$(tr -s ', ' '\n\n' <<< "$rows" | grep '^-')
  valued=$(grep -E ' [A-Z=:]+$' <<< "$rows" | tr -s ', ' '\n\n' | grep '^-')
  while ((i < COMP_CWORD)); do
    case ${COMP_WORDS[i]} in
      -*) if grep -qxF -- "${COMP_WORDS[i]}" <<< "$valued"; then ((i++)); fi ;;
      *) break ;;
    esac
    ((i++))
  done
  if ((i < COMP_CWORD)); then
    if declare -F _command_offset > /dev/null; then _command_offset "$i"; else COMPREPLY=($(compgen -f -- "$word")); fi
    return
  fi
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    --wdir | --output | --prefix) COMPREPLY=($(compgen -d -- "$word")) ;;
    --bind | --bind-to | -bind-to) COMPREPLY=($(compgen -W 'auto core numa socket none' -- "$word")) ;;
    --map) COMPREPLY=($(compgen -W 'slot node core numa' -- "$word")) ;;
    --hostfile | -hostfile) COMPREPLY=($(compgen -f -- "$word")) ;;
    --fabric) COMPREPLY=($(compgen -W 'self shm tcp verbs' -- "$word")) ;;
    *) if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$word")); else COMPREPLY=($(compgen -c -- "$word") $(compgen -f -- "$word")); fi ;;
  esac
}
complete -o filenames -F _rdmarun rdmarun
