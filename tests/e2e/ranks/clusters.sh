#!/usr/bin/env bash
# The files of examples/cluster: linters read them, and what they start is run here by mpirun, with stand-ins for Slurm.
# A run that was stopped before its time limit and one that was not give the same checkpoint.
set -u
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
cluster=$QAT_SOURCE_ROOT/examples/cluster

# ---------------------------------------------------------------- linters
lint() { # lint <file> <program> <command...>
    if command -v "$2" >/dev/null; then check "$1: $2" "${@:2}" "$cluster/$1"; else echo "SKIP $1: $2 is not installed"; fi
}
lint slurm.sbatch shellcheck
lint mpijob.yaml yamllint -d '{extends: default, rules: {line-length: {max: 120}, braces: {max-spaces-inside: 0}}}'
sed -n 's/^#SBATCH //p' "$cluster/slurm.sbatch" >options.txt
wrong=$(grep -vE '^--(job-name|nodes|ntasks-per-node|cpus-per-task|time|signal|output|open-mode)=[^ ]+$|^--requeue$' options.txt)
if [ -z "$wrong" ] && [ -s options.txt ]; then ok "options of sbatch"; else not_ok "options of sbatch: $wrong"; fi

# ---------------------------------------------------------------- they run
. "$QAT_SOURCE_ROOT/tests/e2e/ranks/mpi.sh"
cat >net.ini <<'END'
[data]
kind = shapes
train_count = 64
test_count = 16
[model]
filters = 8
strides = 2
[train]
steps = 400
batch = 16
shards = 8
eval_every = never
checkpoint_every = 5
[quant]
enabled = yes
quant_delay = 10
END
check "undisturbed" train 0 net.ini whole --threads 1
mkdir bin
printf '#!/bin/sh\necho "$@" >>"%s/scontrol.txt"\n' "$work" >bin/scontrol
chmod +x bin/scontrol
export PATH=$work/bin:$tools:$PATH SLURM_NTASKS=2 SLURM_CPUS_PER_TASK=1 SLURM_JOB_ID=17
refuses "slurm.sbatch without a folder" 2 "usage: sbatch slurm.sbatch RECIPE FOLDER" bash "$cluster/slurm.sbatch" net.ini

setsid bash "$cluster/slurm.sbatch" net.ini slurm >slurm.txt 2>&1 &
job=$!
for _ in $(seq 600); do
    [ -e slurm/last.ckpt ] && break
    sleep 0.05
done
kill -USR1 $job
wait $job
has "asked before its time limit" '^stopped at step [0-9]+ of 400' slurm.txt
has "the job queues again" '^requeue 17$' scontrol.txt
check "and then goes on" bash "$cluster/slurm.sbatch" net.ini slurm
same "slurm.sbatch: the checkpoint of one process" whole/last.ckpt slurm/last.ckpt

if python3 -c 'import yaml' 2>/dev/null; then
    python3 - "$cluster/mpijob.yaml" >launcher.sh <<'END'
import sys, yaml
job = yaml.safe_load(open(sys.argv[1]))
specs = job["spec"]["mpiReplicaSpecs"]
launcher, worker = (specs[kind]["template"]["spec"]["containers"][0] for kind in ("Launcher", "Worker"))
assert job["apiVersion"] == "kubeflow.org/v2beta1" and job["kind"] == "MPIJob"
assert launcher["image"] == worker["image"] and launcher["volumeMounts"] == worker["volumeMounts"]
script = launcher["args"][0]
ranks = specs["Worker"]["replicas"] * job["spec"]["slotsPerWorker"]
assert f"-n {ranks} " in script, "as many ranks as slots"
assert f"--threads {worker['resources']['limits']['cpu']} " in script, "as many threads as processors"
print(script)
END
    check "mpijob.yaml: the launcher" env RECIPE=net.ini FOLDER=kubernetes bash launcher.sh
    same "mpijob.yaml: the checkpoint of one process" whole/last.ckpt kubernetes/last.ckpt
else
    echo "SKIP mpijob.yaml: python3 has no yaml (Debian: python3-yaml)"
fi
exit $failed
