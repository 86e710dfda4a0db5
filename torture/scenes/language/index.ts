export { differencesOf, filled, isSame, patternOf } from './bytes.ts';
export { type Ended, failuresOf, isWell, statusesOf, type Taken } from './completions.ts';
export type { Device } from './device.ts';
export { maybe, oneOf, someOrder, sumOf, times } from './draws.ts';
export { ADD, READ, SEND, WRITE } from './opcodes.ts';
export { type Draft, on, type Played, type Scene, type ScenePlan, scene } from './scene.ts';
export { connect, mtuOf, type Reach, type Side, timeOutPsOf, usual } from './side.ts';
export { codeOf, orCode, type Stage } from './stage.ts';
export { topic } from './typed.ts';
