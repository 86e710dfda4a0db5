/**
 * Draws the hardware of a story from the table of knobs. Numbers are drawn more often near the ends of their ranges,
 * where queues are one entry deep and caches hold one line. Costs and latencies stay within some tens of their
 * defaults: a story in which every load takes a millisecond tests nothing and never ends. Sizes and counts go to both
 * ends.
 */
import { ConfigurationError, type NumberParameter } from '../../base/index.ts';
import {
  configurationOf,
  type ParameterValue,
  type ParameterValues,
  parametersByPath,
} from '../../machine/profile/index.ts';
import type { Random } from '../../sim/index.ts';
import { drawn, pick } from './choice.ts';
import { type Facts, fitted, groups, type KnobGroup, knots, pool } from './knobs.ts';

type Settings = Record<string, ParameterValue>;

const memory: ParameterValues = { 'host.memory.sizeMib': 64 };
/** Share of the stories that vary any parameter of the pool. */
const pooledShare = 0.8;
const fittedShare = 0.07;

/** @returns settings that the machine's own checks accept */
export function drawHardware(random: Random, facts: Facts): ParameterValues {
  return acceptable({ ...memory, ...drawPool(random), ...drawGroups(random, groups, facts) });
}

/** The settings of the pool, some of them in knots. */
export function drawPool(random: Random): ParameterValues {
  if (!random.chance(pooledShare)) return {};
  const set: Settings = random.chance(fittedShare) ? { ...fitted } : {};
  for (let left = random.below(4); left > 0; left--) Object.assign(set, pick(random, knots));
  for (let left = random.below(random.chance(0.5) ? 4 : 14); left > 0; left--) {
    const path = pick(random, pool);
    set[path] = drawDeclared(random, path);
  }
  return set;
}

/** The settings of the groups whose conditions hold. */
export function drawGroups(random: Random, from: readonly KnobGroup[], facts: Facts): ParameterValues {
  const set: Settings = {};
  const isDrawn = ({ share = 1, when }: Pick<KnobGroup, 'when'> & { readonly share?: number }): boolean =>
    (when === undefined || when(facts)) && random.chance(share);
  for (const { knobs } of from.filter(isDrawn))
    for (const { path, values } of knobs.filter(isDrawn)) set[path] = drawn(random, values);
  return set;
}

/**
 * Returns settings that the configuration's checks accept: the needed ones, and the drawn ones without those that the
 * checks name.
 */
export function acceptable(hardware: ParameterValues, needed: ParameterValues = {}): ParameterValues {
  const kept: Settings = { ...hardware };
  for (;;) {
    const set = { ...kept, ...needed };
    try {
      configurationOf({ set });
      return set;
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      const { field } = error;
      const paths = Object.keys(kept).filter((path) => !(path in memory));
      const blamed = paths.find((path) => path === field) ?? paths.at(-1);
      if (blamed === undefined) throw error;
      delete kept[blamed];
    }
  }
}

function drawDeclared(random: Random, path: string): ParameterValue {
  const parameter = parametersByPath.get(path)!;
  if (parameter.kind === 'flag') return random.chance(0.5);
  if (parameter.kind === 'choice') return pick(random, parameter.choices);
  const value = drawNumber(random, ...rangeOf(parameter));
  return parameter.powerOfTwo === true ? 2 ** Math.round(Math.log2(Math.max(1, value))) : value;
}

const latencyUnits = ['ps', 'ns', 'us', 'cycles', 'symbols', 'blocks'];

/** Returns the declared range; for costs and latencies at most forty times the default, or 4,000 if that is more. */
function rangeOf({ min, max, unit, default: usual }: NumberParameter): [least: number, most: number] {
  if (unit === 'MHz') return [Math.round(Math.max(min, usual / 8)), Math.round(Math.min(max, usual * 4))];
  const most = latencyUnits.includes(unit) ? Math.max(40 * usual, 4000) : Math.max(16 * usual, 1024);
  return [min, Math.min(max, most)];
}

/** Three in eight near the least, one in eight the most, else any with an even logarithm. */
function drawNumber(random: Random, min: number, max: number): number {
  const kind = random.below(8);
  if (kind < 3) return Math.min(max, min + random.below(3));
  if (kind === 3) return max;
  const low = Math.log2(min + 1);
  const value = 2 ** (low + random.unit() * (Math.log2(max + 1) - low)) - 1;
  return Math.min(max, Math.max(min, Math.round(value)));
}
