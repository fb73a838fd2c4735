# mew.fish - completion of mew(1) for fish. Flags come from `mew COMMAND --help`: they are those of the mew that is run.

function __mew_commands
    command mew --help 2>/dev/null | string replace -rf '^  mew ([a-z-]+) .*? {2,}(.*)$' '$1\t$2'
end

function __mew_flags
    set -l words (commandline -opc)
    set -q words[2]; or return
    command mew $words[2] --help 2>/dev/null | string replace -rf '^  (--?[A-Za-z-]+)\S*.*? {2,}(.*)$' '$1\t$2'
end

complete -c mew -n 'test (count (commandline -opc)) -eq 1' -f -a '(__mew_commands) --help --version'
complete -c mew -n 'test (count (commandline -opc)) -gt 1; and string match -q -- "-*" (commandline -ct)' -f -a '(__mew_flags)'
for flag in trace json gbench bmf gha otlp speedscope firefox
    complete -c mew -n 'test (count (commandline -opc)) -gt 1' -l $flag -r -f -a '(__fish_complete_suffix .json)'
end
complete -c mew -n 'test (count (commandline -opc)) -gt 1' -l color -x -a 'auto always never'
complete -c mew -n 'test (count (commandline -opc)) -gt 1' -l progress -x -a 'auto always never'
complete -c mew -n 'test (count (commandline -opc)) -gt 1' -l clock -x -a 'wall cpu'
complete -c mew -n 'test (count (commandline -opc)) -gt 1' -l capture -x -a 'yes no'
