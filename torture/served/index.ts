/** Hostile guests for a served device: see README.md. */
export {
  addCoverage,
  type CommandCoverage,
  countedKinds,
  type Kind as ServedKind,
  kindMeanings,
  kinds as servedKinds,
  noRoughCoverage,
  type RoughCoverage,
} from './kinds.ts';
export {
  playServedStory,
  type ServedFinding,
  type ServedFindingKind,
  type ServedStory,
  type ServedStoryOptions,
  shrinkServedStory,
} from './served-story.ts';
