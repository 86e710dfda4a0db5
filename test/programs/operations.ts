/** Every operation at every relevant size, in every form: one act after another, the same on both hosts. */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import type { Acts } from './companion.ts';
import { fence, forms, formsPartner } from './operation-forms.ts';
import {
  draining,
  moderation,
  resizing,
  sharedQueue,
  sharedQueuePartner,
  wakeUps,
  wakeUpsPartner,
} from './operation-queues.ts';
import { hugePages, sweep, sweepPartner } from './operation-sweeps.ts';
import { Side } from './side.ts';

export async function provoker(program: ProgramContext): Promise<JsonValue> {
  return runActs(program, provokerActs);
}

export async function partner(program: ProgramContext): Promise<JsonValue> {
  return runActs(program, partnerActs);
}

async function runActs(program: ProgramContext, acts: Acts): Promise<JsonValue> {
  const side = await Side.open(program);
  const wanted = program.args as readonly string[] | null;
  const results: Record<string, JsonValue> = {};
  for (const [name, act] of Object.entries(acts)) {
    if (wanted !== null && !wanted.includes(name)) continue;
    results[name] = await act(side, name);
    await side.barrier(`${name} is over`);
  }
  return results;
}

const silent =
  (bufferBytes = 65_536): Acts[string] =>
  async (side, name) => {
    const pair = await side.pair(name, { bufferBytes });
    await side.barrier(`${name} is over for the partner`);
    return side.stateOf(pair);
  };

/** Ends an act whose partner is silent. */
const withSilent =
  (act: Acts[string]): Acts[string] =>
  async (side, name) => {
    const told = await act(side, name);
    await side.barrier(`${name} is over for the partner`);
    return told;
  };

const provokerActs: Acts = {
  sweep,
  hugePages,
  forms,
  fence: withSilent(fence),
  sharedQueue,
  wakeUps,
  moderation: withSilent(moderation),
  resizing: withSilent(resizing),
  draining: withSilent(draining),
};

const partnerActs: Acts = {
  sweep: sweepPartner,
  hugePages,
  forms: formsPartner,
  fence: silent(),
  sharedQueue: sharedQueuePartner,
  wakeUps: wakeUpsPartner,
  moderation: silent(),
  resizing: silent(),
  draining: silent(),
};
