#!/bin/bash
#SBATCH --job-name=raybench
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append

# sbatch [--nodes=4 --gpus-per-node=2 …] jobs/slurm.sh raybench run BENCHMARK …
#
# One Ray over the nodes of a job, by `ray symmetric-run`, and the command on its head; the command's exit code is the
# job's. Without Slurm the same on this machine alone. jobs/README.md has more.
#
# `ray symmetric-run` (2.60) refuses to start where it sees any Ray on the machine, and ends with `ray stop`, which ends
# every Ray of the user on it. So each node's part runs in a process namespace of its own: it sees no other Ray, can end
# no other, and when its first process ends, the kernel ends all the rest.

set -uo pipefail

fail() { echo "slurm.sh: $*" >&2 && exit 1; }

# The exit code of a child, waited for through signals that are trapped meanwhile.
code_of() {
    local code
    while true; do
        wait "$1"
        code=$?
        if ((code <= 128)) || ! kill -0 "$1" 2>/dev/null; then return "$code"; fi
    done
}

# Words before a command that give it a process namespace: as root, as any user, as any user with an older util-linux.
own_processes() {
    local kind
    for kind in --pid "--pid --user --map-current-user" "--pid --user --map-root-user"; do
        # shellcheck disable=SC2086 # several words
        if unshare $kind --fork --kill-child --mount-proc true 2>/dev/null; then
            echo "unshare $kind --fork --kill-child --mount-proc"
            return
        fi
    done
    return 1
}

# A folder on this node's own disk that this user alone may read; Ray opens its own in it, `r`, to all. Its sockets lie 64
# characters below that, and no path of one may have more than 107: in a folder with a longer name Ray does not start.
own_folder() {
    local base name
    name=rb-$(id -un | cut -c 1-12)-$1-XXXX
    for base in "${SLURM_TMPDIR:-}" "${TMPDIR:-}" /tmp; do
        if [[ -d $base && -w $base ]] && ((${#base} + 1 + ${#name} <= 41)); then
            mktemp --directory "$base/$name" && return
        fi
    done
    return 1
}

# shellcheck disable=SC2329 # called by `inside`
# What this job may use of this node, as options of `ray start`; without Slurm what Ray finds, but no more CPUs than allowed.
resources() {
    local cpus=${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-$(nproc)}} memory_mb=${SLURM_MEM_PER_NODE:-0}
    echo "--num-cpus=$cpus"
    if [[ -n ${SLURM_JOB_ID:-} ]]; then echo "--num-gpus=${SLURM_GPUS_ON_NODE:-0}"; fi
    if ((memory_mb == 0)); then memory_mb=$((${SLURM_MEM_PER_CPU:-0} * cpus)); fi
    if ((memory_mb > 0)); then echo "--object-store-memory=$((memory_mb * 1024 * 1024 * 3 / 10))"; fi
}

# The first process of a namespace: FOLDER KIND ADDRESS NODES COMMAND…. SIGTERM goes to the command, once there is one. When that
# has ended so does this, and with it all of Ray: its own `ray stop` would take seconds and fill the log.
# shellcheck disable=SC2329 # called through `declare -f`
inside() {
    local folder=$1 kind=$2 address=$3 nodes=$4 port=${3##*:} ray code options
    shift 4
    mapfile -t options < <(resources)
    if [[ $kind == head ]]; then
        options+=(--include-dashboard=false --dashboard-port=$((port + 1)) --ray-client-server-port=$((port + 2)))
    fi
    # The inner shell outlives a SIGTERM, so that it can tell how the command ended.
    # shellcheck disable=SC2016 # the inner shell's own
    ray symmetric-run --address "$address" --min-nodes "$nodes" --temp-dir="$folder/r" --disable-usage-stats \
        --dashboard-agent-listen-port=0 --min-worker-port=0 --max-worker-port=0 "${options[@]}" -- bash -c \
        'trap : TERM; "$@" <&0 & echo $! >"$0/command"; while wait $!; code=$?; ((code > 128)) && kill -0 $!; do :; done
        echo $code >"$0/code"; kill -USR1 1' "$folder" "$@" <&0 &
    ray=$!
    # shellcheck disable=SC2064 # this process and folder
    trap "kill -TERM \$(cat '$folder/command' 2>/dev/null || echo $ray) 2>/dev/null" TERM
    # shellcheck disable=SC2064 # this folder
    trap "exit \$(cat '$folder/code')" USR1
    code_of "$ray"
    code=$?
    # A SIGTERM to all processes of the job ends `ray symmetric-run` before the command, whose end comes as USR1.
    if [[ -s $folder/command ]]; then
        while kill -0 "$(<"$folder/command")" 2>/dev/null; do sleep 0.2 & wait $!; done
        sleep 1 & wait $!
    fi
    # `ray symmetric-run` itself ends with 0 if Ray can't be started.
    ((code > 128)) || echo "slurm.sh: $(hostname): no Ray came up, or not on all nodes; the command was not run" >&2
    return $((code ? code : 1))
}

# One node's part: JOB head|worker ADDRESS NODES COMMAND…. Leaves nothing behind, in whatever way it ends.
node() {
    local job=$1 apart folder part
    shift
    apart=$(own_processes) || fail "$(hostname) allows no process namespace (unshare --user --pid), without which jobs on" \
        "one machine meet; the administrator allows them by sysctl user.max_user_namespaces, or by an AppArmor profile"
    folder=$(own_folder "$job") || fail "$(hostname): no folder for Ray; TMPDIR must be a short path that may be written"
    # shellcheck disable=SC2064 # this folder
    trap "rm -rf '$folder'" EXIT
    # shellcheck disable=SC2086 # several words
    $apart bash -c "$(declare -f code_of resources inside); inside \"\$@\"" slurm.sh "$folder" "$@" <&0 &
    part=$!
    # `unshare` itself keeps signals to itself: its child is the namespace's first process.
    # shellcheck disable=SC2064 # this process
    trap "pkill -TERM -P $part" TERM INT HUP
    trap 'again=yes; kill -TERM $$' USR1
    code_of "$part"
}

# HOST:PORT of the head, on this machine: of ports that follow from job and user, the first three that are free.
head_address() {
    local job=$1 host=127.0.0.1 port first
    if [[ $2 != 1 ]]; then
        first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
        # In many a hosts file the machine's own name is 127.0.1.1, where other nodes do not find it.
        host=$(getent ahostsv4 "$first" | awk '$1 !~ /^127\./ { print $1; exit }')
        host=${host:-$(hostname -I | awk '{ print $1 }')}
    fi
    port=$((20000 + 3 * ((job + 7 * UID) % 4000)))
    while taken "$host" $port || taken "$host" $((port + 1)) || taken "$host" $((port + 2)); do port=$((port + 3)); done
    echo "$host:$port"
}

# Whether somebody listens at a port, under this address or on loopback.
taken() { (exec 3<>"/dev/tcp/$1/$2" || exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null; }

(($# > 0)) || fail "give the command: sbatch jobs/slurm.sh raybench run …"
command -v ray >/dev/null || fail "no ray on the PATH; activate the environment that raybench is installed in"
if [[ -z $(type -P -- "$1") && $(type -t -- "$1") != builtin ]]; then
    echo "slurm.sh: $1: command not found, or it may not be run; give its path, or activate its environment" >&2
    exit 127
fi
for tool in unshare pkill; do
    command -v $tool >/dev/null || fail "no $tool on the PATH; it comes with util-linux and procps"
done

job=${SLURM_JOB_ID:-$$}
[[ $job =~ ^[0-9]+$ ]] || fail "SLURM_JOB_ID is $job, no number"
nodes=${SLURM_JOB_NUM_NODES:-1} workers='' again=''
address=$(head_address "$job" "$nodes")
# The Ray of this job, for the command and for `ray` itself; nobody else on the machine knows the token.
export RAY_ADDRESS=$address RAY_AUTH_MODE=token RAY_AUTH_TOKEN
RAY_AUTH_TOKEN=$(od -An -N 32 -t x1 /dev/urandom | tr -d ' \n')
# Nodes may start slowly where the environment is read over a network; workers run at niceness 15 if nothing is said.
export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=300 RAY_worker_niceness=0
if ((nodes > 1)); then
    # This script runs on the job's first node, so that `srun` starts the others' parts only.
    srun --relative=1 --nodes=$((nodes - 1)) --ntasks=$((nodes - 1)) --ntasks-per-node=1 \
        ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} bash -uo pipefail -c \
        "$(declare -f fail code_of own_processes own_folder resources inside node); node \"\$@\"" \
        slurm.sh "$job" worker "$address" "$nodes" "$@" &
    workers=$!
fi
node "$job" head "$address" "$nodes" "$@"
code=$?
if [[ -n $workers ]]; then
    kill -TERM "$workers" 2>/dev/null
    wait "$workers"
fi
# The time limit came near: the job goes on where it stopped. A job that is cancelled or preempted gets SIGTERM instead.
if [[ -n $again && -n ${SLURM_JOB_ID:-} && $code != 0 ]]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
