/** The language of scenes. */
export { psPerMs, psPerNs, psPerUs } from '../../../base/index.ts';
export type { FaultEntry } from '../../../machine/faults/index.ts';
export type { ParameterValues } from '../../../machine/profile/index.ts';
export { Random } from '../../../sim/index.ts';
export { differencesOf, filled, isSame, patternOf } from './bytes.ts';
export { type Ended, failuresOf, isWell, statusesOf, type Taken } from './completions.ts';
export type { Device } from './device.ts';
export { Draws, series, sumOf, times } from './draws.ts';
export { ADD, READ, SEND, WRITE } from './opcodes.ts';
export { type ArgsOf, type Draft, on, type Played, type Scene, type ScenePlan, scene } from './scene.ts';
export { connect, mtuOf, present, type Reach, Side, timeOutPsOf, usual } from './side.ts';
export { codeOf, orCode, Stage, topic } from './stage.ts';
export { type Request, requestsOf, Traffic } from './traffic.ts';
