export { SlurmEngine } from './engine.ts';
export { runTask } from './task.ts';
