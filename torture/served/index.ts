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
  type ServedStory,
  shrinkServedStory,
} from './served-story.ts';
