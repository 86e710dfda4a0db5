/** Interface of this room: see README.md. */
export { type Bottleneck, bottleneckOf } from './bottleneck.ts';
export { isWithinLink, linkBound } from './link-bound.ts';
export { type Measured, mttLinesOf } from './measured.ts';
export { meanPostedPsOf, type StageShare, stagesOf } from './stages.ts';
export { bottleneckLines, bottleneckShort, type EventTimes, stageLines } from './words.ts';
