#!/bin/sh
# slurm.sh COMMAND...: runs a command beside a Slurm of three nodes, all on this
# machine, and ends with its status; 77, with the reason, where that can't be.
#
# Nothing of it is seen from outside, nor outlives it: it runs in namespaces of its
# own. Of the network, since without munge whoever reaches the ports runs jobs as
# root. Of processes, so that all that were started end with the first, even if
# this script is killed. Of mounts, so that its folder, which is in memory, goes
# too. Each node has namespaces within these, of processes and of names and of the
# steady clock: a worker's number can be that of one on another node, and to kill
# a node is to kill its first process.
#
# The command finds
#   SLURM_CONF           for sbatch and the others
#   FSKNN_CLUSTER        the folder of all this, and log/ in it
#   FSKNN_CLUSTER_WORK   where its own files go; in memory, or a new folder in
#                        what FSKNN_CLUSTER_DISK names (NFS, say)
#   FSKNN_CLUSTER_TOOL   this script: `sh $FSKNN_CLUSTER_TOOL start 2` starts
#                        node2 (again), `kill 2` ends it as a loss of power does,
#                        `slurmd 2` kills that node's slurmd, which is started
#                        again after some seconds

nodes="1 2 3"

cannot() {
  echo "A Slurm can't be started here: $1." >&2
  exit 77
}

# --- outside -----------------------------------------------------------------

look() {
  [ "$(id -u)" -eq 0 ] || cannot "that takes root"
  PATH=$PATH:/usr/sbin:/sbin
  export PATH
  for program in slurmctld slurmd sbatch unshare setpriv ip mount; do
    command -v $program > /dev/null || cannot "there is no $program"
  done
  unshare $outer true 2> /dev/null || cannot "unshare gets no namespaces"
  unshare $outer sh -c 'ip link set lo up && hostname head &&
      mount --make-rshared / && mount -t tmpfs none /tmp' \
    > /dev/null 2>&1 || cannot "what is in its namespaces can't be changed"
  unshare $outer unshare $inner true 2> /dev/null ||
    cannot "unshare gets no namespaces within others"
}

outer="--net --mount --uts --pid --fork --kill-child --mount-proc"
inner="--mount --propagation slave --uts --time --pid --fork --kill-child --mount-proc"

# Of this file, as a whole path.
me=$(cd "$(dirname "$0")" && pwd -P)/$(basename "$0")

outside() {
  look
  # A short path: names of sockets are short. And not R's, which may be long.
  dir=$(mktemp -d /tmp/fsknn-slurm.XXXXXX) || exit 1
  disk=
  if [ -n "${FSKNN_CLUSTER_DISK-}" ]; then
    disk=$(mktemp -d "$FSKNN_CLUSTER_DISK/fsknn-cluster.XXXXXX") || exit 1
  fi
  child=
  # Also when all went well; kills nothing then.
  trap 'clean' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
  # Should this shell be killed, so is unshare, and with it all that is inside.
  setpriv --pdeathsig KILL unshare $outer sh "$me" inside "$dir" "$disk" "$@" \
    < /dev/null &
  child=$!
  wait "$child"
  status=$?
  child=
  exit $status
}

clean() {
  [ -z "$child" ] || kill -9 "$child" 2> /dev/null
  rm -rf "$dir" ${disk:+"$disk"}
}

# --- inside ------------------------------------------------------------------

inside() {
  FSKNN_CLUSTER=$1
  FSKNN_CLUSTER_WORK=${2:-$1/work}
  shift 2
  mount -t tmpfs -o mode=0755 none "$FSKNN_CLUSTER" || exit 1
  mkdir -p "$FSKNN_CLUSTER/state" "$FSKNN_CLUSTER/spool" "$FSKNN_CLUSTER/log" \
    "$FSKNN_CLUSTER/tmp" "$FSKNN_CLUSTER_WORK" || exit 1
  SLURM_CONF=$FSKNN_CLUSTER/slurm.conf
  FSKNN_CLUSTER_TOOL=$me
  TMPDIR=$FSKNN_CLUSTER/tmp
  PATH=$PATH:/usr/sbin:/sbin
  export FSKNN_CLUSTER FSKNN_CLUSTER_WORK SLURM_CONF FSKNN_CLUSTER_TOOL TMPDIR \
    PATH
  # What the command mounts later, nodes see too; outside nobody does.
  mount --make-rshared / || exit 1
  ip link set lo up || exit 1
  # Names are looked up only where there is an address that is not loopback's, and
  # Open MPI wants an interface of its own, too: two ends of a wire that both are here.
  wire=lo
  if ip link add fsknn0 type veth peer name fsknn1 2> /dev/null; then
    ip link set fsknn1 up && ip link set fsknn0 up || exit 1
    wire=fsknn0
  fi
  ip address add 192.0.2.1/24 dev $wire || exit 1
  # This machine's name may be one that nothing can look up.
  hostname head || exit 1
  echo "127.0.0.1 localhost head node1 node2 node3" > "$FSKNN_CLUSTER/hosts"
  if [ -e /etc/hosts ]; then
    mount --bind "$FSKNN_CLUSTER/hosts" /etc/hosts || exit 1
  fi
  # Without this slurmd looks for control groups, and ends where there are none, as
  # in a chroot, though it is told to use none.
  echo "CgroupPlugin=cgroup/v1" > "$FSKNN_CLUSTER/cgroup.conf"
  write_conf > "$SLURM_CONF"
  slurmctld -D < /dev/null > "$FSKNN_CLUSTER/log/start" 2>&1 &
  for node in $nodes; do
    start_node "$node"
  done
  wait_for_nodes || {
    tail -n 20 "$FSKNN_CLUSTER"/log/start*
    cannot "its nodes were not there after two minutes"
  }
  "$@"
  exit $?
}

write_conf() {
  cat << END
ClusterName=fsknn
SlurmctldHost=head(127.0.0.1)
SlurmctldPort=16817
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$FSKNN_CLUSTER/state
SlurmdSpoolDir=$FSKNN_CLUSTER/spool/%n
SlurmdPidFile=$FSKNN_CLUSTER/%n.pid
SlurmctldPidFile=$FSKNN_CLUSTER/ctld.pid
SlurmctldLogFile=$FSKNN_CLUSTER/log/ctld
SlurmdLogFile=$FSKNN_CLUSTER/log/%n
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PropagateResourceLimits=NONE
SchedulerParameters=sched_interval=5,sched_min_interval=100000
KillWait=5
# A loaded machine is no dead one.
SlurmdTimeout=60
MessageTimeout=60
NodeName=node[1-3] NodeHostname=head NodeAddr=127.0.0.1 Port=[17001-17003] CPUs=1 RealMemory=2000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
}

# Its steady clock is far from that of the others, as after another boot.
start_node() {
  setsid unshare $inner --monotonic "$(($1 * 100000))" \
    sh "$FSKNN_CLUSTER_TOOL" node "$1" \
    < /dev/null > "$FSKNN_CLUSTER/log/start-node$1" 2>&1 &
  echo $! > "$FSKNN_CLUSTER/node$1.first"
}

# A node's first process; its slurmd is started again, as systemd would.
node() {
  hostname "node$1" || exit 1
  while :; do
    slurmd -D -N "node$1"
    sleep 3
  done
}

wait_for_nodes() {
  waited=0
  until [ "$(sinfo -h -N -t idle,mixed,allocated -o %N 2> /dev/null |
    sort -u | wc -l)" -eq 3 ]
  do
    waited=$((waited + 1))
    [ "$waited" -le 120 ] || return 1
    sleep 1
  done
}

# --- what the command can do -------------------------------------------------

kill_node() {
  # unshare, and by that the node's first process, and by that all.
  kill -9 "$(cat "$FSKNN_CLUSTER/node$1.first")"
  # slurmctld would see it after a minute, or, if the node is back by then, take
  # its job for one that runs for some minutes more. It is up again when slurmd is.
  scontrol update NodeName="node$1" State=DOWN Reason=killed
}

# Its number in the file is one of its node's namespace.
kill_slurmd() {
  for process in /proc/[0-9]*; do
    words=$(tr '\0' ' ' 2> /dev/null < "$process/cmdline")
    if [ "$words" = "slurmd -D -N node$1 " ]; then
      kill -9 "${process#/proc/}"
    fi
  done
}

case ${1-} in
  inside) shift; inside "$@" ;;
  node) node "$2" ;;
  start) start_node "$2" ;;
  kill) kill_node "$2" ;;
  slurmd) kill_slurmd "$2" ;;
  '') echo "slurm.sh COMMAND..." >&2; exit 2 ;;
  *) outside "$@" ;;
esac
