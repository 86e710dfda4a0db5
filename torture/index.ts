/** Interface of the test tool for the command line, tests and benchmarks. */
export { campaign } from './campaign.ts';
export { type Coverage, joinCoverage, noCoverage } from './coverage.ts';
export { acceptable, drawPool } from './drawing/draw-hardware.ts';
export { drawnPaths } from './drawing/knobs.ts';
export { fabricStoryOf } from './fabric/draw-fabric.ts';
export { renderFabricStory } from './fabric/fabric-story.ts';
export { playFabricStory } from './fabric/play-fabric.ts';
export type { Finding } from './finding.ts';
export { differencesOf, firstDifference } from './first-difference.ts';
export { lastMoments } from './last-moments.ts';
export { renderStory } from './render-story.ts';
export { programsOf, runStory, textOf } from './run-story.ts';
export { sceneNames } from './scenes/index.ts';
export {
  addCoverage,
  type CommandCoverage,
  countedKinds,
  type Kind as ServedKind,
  kinds as servedKinds,
  kindTable as servedKindTable,
  noRoughCoverage,
  type RoughCoverage,
} from './served/kinds.ts';
export {
  playServedStory,
  type ServedStory,
  shrinkServedStory,
} from './served/served-story.ts';
export { shrinkStory } from './shrink.ts';
export type { Story } from './story.ts';
export { storyFrom } from './story-of-file.ts';
export { plain, storyOfSeed } from './story-of-seed.ts';
export type { StoryOutcome } from './torture-worker.ts';
