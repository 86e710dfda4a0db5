/** Interface of this room: see README.md. */
export { NodeAgents } from './node-agents.ts';
