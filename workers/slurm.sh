#!/usr/bin/env bash
#SBATCH --job-name=neuronqa
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=04:00:00
#
# A fleet for the length of a Slurm job: sbatch workers/slurm.sh --catalog top-100k --db postgresql://USER@HOST/NAME
#
# Everything behind the script's name goes to `neuronqa sweep`. A job that is cut off is gone on with by
# `sbatch workers/slurm.sh --resume SWEEP --db ...`.
set -euo pipefail

if [[ $# -eq 0 ]]; then
  echo "usage: sbatch workers/slurm.sh OPTIONS-OF-NEURONQA-SWEEP" >&2
  exit 2
fi

RAY_AUTH_TOKEN="$(python -c 'import secrets; print(secrets.token_hex(32))')"
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head="${nodes[0]}"
port=$((20000 + SLURM_JOB_ID % 20000))
address="$head:$port"

# The head's node works as well; one core of it is left to the driver.
srun --nodes=1 --ntasks=1 -w "$head" --overlap \
  ray start --head --port="$port" --num-cpus="$((SLURM_CPUS_ON_NODE - 1))" --include-dashboard=false --block &
sleep 15
for node in "${nodes[@]:1}"; do
  srun --nodes=1 --ntasks=1 -w "$node" --overlap ray start --address="$address" --block &
done

neuronqa sweep --address "$address" "$@"
