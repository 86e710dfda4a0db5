/** Trouble for a served device: see README.md. */
export { type Kind as ServedKind, kinds as servedKinds } from './rough-guest.ts';
export {
  playServedStory,
  type ServedFinding,
  type ServedFindingKind,
  type ServedStory,
  type ServedStoryOptions,
  shrinkServedStory,
} from './served-story.ts';
