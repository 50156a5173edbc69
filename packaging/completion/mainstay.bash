# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of mainstay(1) for bash. Installed as share/bash-completion/completions/mainstay.

# Queries the agent; prints nothing if no agent runs.
_mainstay_ask() {
    mainstay "${socket[@]}" "$@" 2>/dev/null
}

# The names of pods, without "pod/".
_mainstay_pods() {
    _mainstay_ask get pods "${namespace[@]}" -o name | sed 's,^pod/,,'
}

_mainstay_daemonsets() {
    _mainstay_ask get daemonsets "${namespace[@]}" -o name | sed 's,^daemonset.apps/,daemonset/,'
}

_mainstay_namespaces() {
    _mainstay_ask get pods -A --no-headers | awk '{ print $1 }' | sort -u
}

_mainstay_containers() { # POD
    # The lines of the pod's description between "Containers:" and the next heading, with an indentation of two columns.
    _mainstay_ask describe pod "$1" "${namespace[@]}" |
        sed -n '/^Containers:/,/^[^ C]/s/^  \([^ ].*\):$/\1/p'
}

_mainstay() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command='' words=() socket=() namespace=() options='' choices='' i
    # A test compares these lines with the table of commands.
    local commands='get describe logs exec attach rollout cp top match delete wait images validate diff debug secret source kubeconfig version help'
    local with_value=' -l --selector -o --output -c --container --tail --since --since-time --limit-bytes --grace-period --cascade --revision --to-revision --labels --taints --node --image --target --profile --namespace --socket --key --fleet --number --expires --next-keys --progress-deadline-seconds --keys --server --timeout --name --config --change --from --cache --deltas --platform --type -r --recipient -R --recipients-file '

    for ((i = 1; i < COMP_CWORD; i++)); do
        case "${COMP_WORDS[i]}" in
        --socket) socket=(--socket "${COMP_WORDS[++i]}") ;;
        -n | --namespace) namespace=(-n "${COMP_WORDS[++i]}") ;;
        -A | --all-namespaces) namespace=(-A) ;;
        -*) if [[ $with_value == *" ${COMP_WORDS[i]} "* ]]; then ((++i)); fi ;;
        *) if [ -z "$command" ]; then command=${COMP_WORDS[i]}; else words+=("${COMP_WORDS[i]}"); fi ;;
        esac
    done

    case "$command" in
    get) options='--namespace --all-namespaces --selector --output --watch --no-headers --show-labels' ;;
    describe) options='--namespace --all-namespaces --selector' ;;
    logs) options='--namespace --container --all-containers --follow --previous --tail --since --since-time --limit-bytes --timestamps' ;;
    exec) options='--namespace --container --stdin --tty' ;;
    attach) options='--namespace --container --stdin --tty' ;;
    rollout) options='--namespace --revision --to-revision' ;;
    cp) options='--namespace --container' ;;
    top) options='--namespace --all-namespaces --selector --containers --no-headers' ;;
    match) options='--labels --taints --node --no-headers' ;;
    delete) options='--namespace --selector --all --grace-period --now --wait --cascade' ;;
    wait) options='--bootstrap --critical --timeout' ;;
    images) options='--output --no-headers --name --config --change' ;;
    debug) options='--image --target --container --namespace --stdin --tty --profile' ;;
    secret) options='--namespace --type --recipient --recipients-file' ;;
    source) options='--key --fleet --number --expires --next-keys --progress-deadline-seconds --platform --from --cache --deltas --no-images --check --rotate --remove-old --keys' ;;
    kubeconfig) options='--server' ;;
    esac

    case "$previous" in
    --socket)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
        ;;
    -n | --namespace) choices=$(_mainstay_namespaces) ;;
    -o | --output) choices='wide json yaml name' ;;
    --profile) choices='general baseline netadmin sysadmin' ;;
    -c | --container | --target) choices=$(_mainstay_containers "${words[0]}") ;;
    -*)
        if [[ $with_value == *" $previous "* ]]; then
            return
        fi
        ;;&
    *)
        case "$current:$command:${#words[@]}" in
        -*) choices="$options --socket --help" ;;
        *::0) choices=$commands ;;
        *:get:0) choices='pods daemonsets nodes events images configmaps secrets priorityclasses runtimeclasses' ;;
        *:describe:0) choices='pods daemonsets nodes' ;;
        *:delete:0) choices='pods daemonsets' ;;
        *:top:0) choices='pods' ;;
        *:images:0) choices='ls pull import export diff rm prune verify repair' ;;
        *:debug:0) choices="bundle dump log-level $(_mainstay_pods)" ;;
        *:debug:1) if [ "${words[0]}" = log-level ]; then choices='error warning info debug'; fi ;;
        *:rollout:0) choices='history status undo restart' ;;
        *:rollout:1) choices=$(_mainstay_daemonsets) ;;
        *:get:1 | *:describe:1 | *:delete:1)
            case "${words[0]}" in
            ds | daemonset*) choices=$(_mainstay_daemonsets | sed 's,^daemonset/,,') ;;
            *) choices=$(_mainstay_pods) ;;
            esac
            ;;
        *:get:* | *:describe:* | *:top:* | *:delete:* | *:logs:0 | *:exec:0 | *:attach:0) choices=$(_mainstay_pods) ;;
        *:logs:1) choices=$(_mainstay_containers "${words[0]}") ;;
        *:help:0) choices=$commands ;;
        *:cp:*)
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -S : -W "$(_mainstay_pods)" -- "$current")
            return
            ;;
        *:validate:* | *:match:* | *:diff:*)
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return
            ;;
        esac
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
}

complete -F _mainstay mainstay
