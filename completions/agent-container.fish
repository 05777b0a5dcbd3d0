# fish completion for agent-container; load it with:
#   agent-container completions fish | source
function __agent_container_complete
    set -l before (commandline --tokenize --current-process --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor)
    set -l program $before[1]
    set -e before[1]
    set -l prefix ''
    if string match --quiet --regex -- '^--[^=]+=' "$current"
        set prefix (string replace --regex -- '=.*' '=' "$current")
        set -a before (string replace --regex -- '=.*' '' "$current")
        set current (string replace --regex -- '^[^=]*=' '' "$current")
    end
    set -l found ($program --complete "$current" $before 2>/dev/null)
    switch "$found[1]"
        case :files
            if string match --quiet '@*' -- "$current" # --task @FILE
                set prefix $prefix@
                set current (string sub --start 2 -- "$current")
            end
            __fish_complete_path "$current" | string replace --regex -- '^' "$prefix"
        case :directories
            __fish_complete_directories "$current" | string replace --regex -- '^' "$prefix"
        case '*'
            for word in $found
                echo $prefix$word
            end
    end
end
complete --command agent-container --no-files --arguments '(__agent_container_complete)'
