/** All scenes, in the order of their names, which are those of their exports with hyphens. */
import { ConfigurationError } from '../../base/index.ts';
import * as all from './all.ts';
import type { Scene, ScenePlan } from './language/index.ts';

const nameOf = (key: string): string => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

export const scenes: readonly Scene[] = Object.entries(all).map(([key, unnamed]) => ({
  ...unnamed,
  name: nameOf(key),
}));

export const sceneNames: readonly string[] = scenes.map(({ name }) => name);

/** @throws ConfigurationError for a name that no scene has */
export function sceneOf({ name }: Pick<ScenePlan, 'name'>): Scene {
  const scene = scenes.find((one) => one.name === name);
  if (scene === undefined) throw new ConfigurationError('scene', name, `one of ${sceneNames.join(', ')}`);
  return scene;
}
export { Draws, type Scene, type ScenePlan } from './language/index.ts';
