/** The program of every scene: any partition finds it by this module, and its scene by name. */
import type { ProgramContext } from '../../machine/index.ts';
import { sceneOf } from './index.ts';

interface SceneArgs {
  readonly name: string;
  /** Place among the scene's programs. */
  readonly program: number;
  readonly args: unknown;
}

export const playScene = (context: ProgramContext<SceneArgs>): Promise<unknown> => {
  const { name, program, args } = context.args;
  return sceneOf({ name }).programs[program]!.run(context, args);
};
