/** Interface of this room: see README.md. */
export { IbtaState } from './ibta-state.ts';
export { IbtaStates } from './ibta-states.ts';
