/** Traits of a story's scene; empty for a story of players. */
import { type Scene, sceneOf } from '../scenes/index.ts';
import type { Story } from '../story.ts';

export const traitsOf = ({ scene }: Pick<Story, 'scene'>): Partial<Scene> =>
  scene === undefined ? {} : sceneOf(scene);
