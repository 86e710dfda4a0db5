export { SlurmEngine } from './slurm-engine.ts';
export { runTask } from './task.ts';
