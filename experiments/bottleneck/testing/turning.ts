/** Changes the advised parameter by one step of a table: twice as much, half of it, or the next word. */
import { configurationOf, type ParameterValue, parametersByPath } from '../../../machine/profile/index.ts';
import { inlineMaxOf, type PerfArgs, parsedWorkload, perfArgsOf } from '../../workloads/index.ts';
import { mtuBytesOf, type Turn } from '../measured.ts';
import type { DrawnRun, FieldValue } from './drawn-run.ts';

/** The run to simulate. */
export interface RunOrder {
  readonly machine: { readonly set: Readonly<Record<string, ParameterValue>>; readonly profile?: string };
  readonly args: PerfArgs;
}

export function orderOf({ fields, set, profile }: DrawnRun): RunOrder {
  const parts = Object.entries(fields).map(([name, value]) =>
    name === 'test' ? `${value}` : value === true ? name : `${name}=${value}`,
  );
  const machine = { set, ...(profile === undefined ? {} : { profile }) };
  return { machine, args: perfArgsOf(parsedWorkload(parts.join(','))) };
}

/** The run with the change and its accompanying changes; undefined if a step exceeds the option's range. */
export function turnedBy(run: DrawnRun, { what, towards, along = [], because }: Turn): DrawnRun | undefined {
  // A parameter that is only useful as a whole is changed by several steps.
  const factor = because === undefined ? 2 : 16;
  let turned: DrawnRun | undefined = run;
  for (const each of [{ what, towards }, ...along]) {
    if (turned === undefined) return;
    turned = each.what.startsWith('--')
      ? withField(turned, each.what, each.towards)
      : withParameter(turned, run, each.what, each.towards, factor);
  }
  return turned;
}

function withParameter(
  turned: DrawnRun,
  run: DrawnRun,
  path: string,
  towards: Turn['towards'],
  factor: number,
): DrawnRun {
  const parameter = parametersByPath.get(path)!;
  const value = path
    .split('.')
    .reduce<unknown>(
      (group, name) => Reflect.get(group as object, name),
      configurationOf(orderOf(run).machine),
    );
  const isMore = towards === 'more';
  const next =
    parameter.kind === 'choice'
      ? parameter.choices[parameter.choices.indexOf(String(value)) + (isMore ? 1 : -1)]!
      : parameter.kind === 'number'
        ? inSteps(path, Number(value), isMore ? factor : 1 / factor, parameter)
        : isMore;
  return { ...turned, set: { ...turned.set, [path]: next } };
}

/** Generations advance by one; other values double, up to a limit. */
function inSteps(
  path: string,
  value: number,
  factor: number,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  if (path === 'pcie.link.generation') return value + (factor > 1 ? 1 : -1);
  return Math.min(max, Math.max(min, Math.floor(value * factor)));
}

/** Options whose value is not a number to double. */
const ofWords: Readonly<Record<string, (args: PerfArgs) => FieldValue>> = {
  '--page-size': () => '2M',
  '--inline': ({ sizeBytes, connection, verb }) => Math.min(inlineMaxOf(connection, verb), sizeBytes),
};

function withField(run: DrawnRun, option: string, towards: Turn['towards']): DrawnRun | undefined {
  const { args } = orderOf(run);
  const name = option.slice(2).replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const word = ofWords[option]?.(args);
  if (word !== undefined) return { ...run, fields: { ...run.fields, [name]: word } };
  const counts: Readonly<Record<string, number>> = {
    qps: args.qpCount,
    threads: args.threads ?? 1,
    txDepth: args.txDepth,
    rxDepth: args.rxDepth,
    postList: args.postList ?? 1,
    cqMod: args.cqModeration,
    mtu: mtuBytesOf(args),
    region: args.region?.bytes ?? 0,
    keys: args.region?.keys ?? 1,
    warmup: args.warmupIterations ?? args.iterations / 2,
  };
  const next = Math.floor(counts[name]! * (towards === 'more' ? 2 : 0.5));
  const fields: Record<string, FieldValue> = { ...run.fields, [name]: next };
  if (name === 'threads') fields['qps'] = Math.max(args.qpCount, next);
  if (name === 'qps') fields['iters'] = Math.max(8, Math.ceil((args.iterations * args.qpCount) / next));
  if (name === 'postList' && args.cqModeration % next !== 0) fields['cqMod'] = next;
  if (next < 1 || (name === 'cqMod' && next % (args.postList ?? 1) !== 0)) return;
  if (next < (args.threads ?? 1) && name === 'qps') return;
  return { ...run, fields };
}
