/**
 * Values that a JavaScript user can pass to a machine by mistake: each causes a typed error that names field, value and
 * range, or has no effect.
 */
import { describe, expect, it } from 'vitest';
import { ConfigurationError, SimulatorError } from '../base/index.ts';
import { RunError } from '../sim/index.ts';
import { Machine } from './machine.ts';
import type { JsonValue, ProgramContext } from './program.ts';

const set = { 'host.memory.sizeMib': 64 };
const cyclic: Record<string, unknown> = {};
cyclic['self'] = cyclic;
const deep = Array.from({ length: 5000 }).reduce<unknown>((inner) => [inner], 1);
/** Wrong for most options, right for some. */
const values: readonly unknown[] = [
  ...[null, 5, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60, '', 'x', true, 5n, Symbol('s')],
  ...[[], [null], {}, { x: 1 }, cyclic, new Map(), new Date(0), Uint8Array.of(1), () => 0, deep],
];
const textOf = (value: unknown): string => {
  if (value === cyclic) return 'an object that contains itself';
  if (value === deep) return 'a deep list';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
};

/** The error of an attempt; undefined if it succeeded. */
const errorOf = async (attempt: () => unknown): Promise<unknown> => {
  try {
    await attempt();
    return undefined;
  } catch (error) {
    return error;
  }
};

function expectTyped(error: unknown): void {
  if (error === undefined || error instanceof RunError) return;
  expect(error).toBeInstanceOf(SimulatorError);
  const { field, range, message } = error as SimulatorError;
  expect([field.length > 0, range.length > 0, message.length < 1000]).toEqual([true, true, true]);
}

const create = (options: unknown): Promise<Machine> => Machine.create(options as never);

describe('Machine.create', () => {
  it.each([
    [null, 'options of a machine', null],
    [5, 'options of a machine', 5],
    [[], 'options of a machine', []],
    [{ profile: 5 }, 'profile', 5],
    [{ set: [] }, 'set', []],
    [{ set: null }, 'set', null],
    [{ seed: 'x' }, 'seed', 'x'],
    [{ nodes: 1.5 }, 'nodes', 1.5],
    [{ onProgress: 5 }, 'onProgress', 5],
    [{ analysis: 5 }, 'analysis', 5],
    [{ shortcuts: 'no' }, 'shortcuts', 'no'],
    [{ profiel: 'x' }, 'option of a machine', 'profiel'],
  ])('rejects %j with field, value and range', async (options, field, value) => {
    const error = await errorOf(() => create(options));
    expect(error).toBeInstanceOf(ConfigurationError);
    expect([(error as ConfigurationError).field, (error as ConfigurationError).value]).toEqual([
      field,
      value,
    ]);
    expect((error as ConfigurationError).range).not.toBe('');
  });

  it('accepts or rejects any value of any option, and fails in no other way', async () => {
    const names = ['profile', 'set', 'partition', 'seed', 'nodes', 'faults', 'shuffleSeed', 'shortcuts'];
    const rest = [
      'analysis',
      'watch',
      'programPatienceMs',
      'attributesCosts',
      'onProgress',
      'epochPs',
      'stepLimit',
    ];
    for (const name of [...names, ...rest]) {
      for (const value of values) {
        const error = await errorOf(async () => (await create({ set, [name]: value })).close());
        expectTyped(error);
      }
    }
    for (const value of values) expectTyped(await errorOf(async () => (await create(value)).close()));
  });
});

describe('a machine', () => {
  it('accepts or rejects any argument of any call, and fails in no other way', async () => {
    await using machine = await Machine.create({ set });
    const calls = machine as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>;
    const names = [
      'load',
      'readConfig32',
      'readRegister32',
      'physicalMemory',
      'readPhysical',
      'readVirtual',
      'progressOf',
    ];
    for (const name of names)
      for (const value of values)
        for (const args of [[value], [0, value], [0, 0, value], [0, 'p', value, 1], [0, 'p', 0, value]])
          expectTyped(await errorOf(() => calls[name]!(...args)));
    for (const value of values)
      for (const option of ['node', 'run', 'name', 'core', 'process', 'args']) {
        const options = { node: 0, run: async () => undefined, [option]: value };
        expectTyped(await errorOf(() => machine.load(options as never)));
      }
  });

  it('accepts or rejects any limit of a run, and fails in no other way', async () => {
    await using machine = await Machine.create({ set });
    const calls = machine as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>;
    const isLong = (value: unknown): boolean => typeof value === 'number' && value > 1e6;
    for (const value of values) {
      if (isLong(value)) continue;
      expectTyped(await errorOf(() => calls['runTo']!(value)));
      expectTyped(await errorOf(() => calls['runTo']!(1e6, value)));
      expectTyped(await errorOf(() => calls['run']!({ limitPs: value ?? 1e6 })));
      expectTyped(await errorOf(() => calls['run']!({ limitPs: 1e6, signal: value })));
      expectTyped(await errorOf(() => calls['runUntil']!(() => true, value)));
      expectTyped(await errorOf(() => calls['runUntil']!(() => true, 1e6, value)));
      if (typeof value !== 'function') expectTyped(await errorOf(() => calls['runUntil']!(value, 1e6, 1e6)));
    }
  });
});

describe("a program's result", () => {
  const resultOf = async (value: unknown): Promise<unknown> => {
    await using machine = await Machine.create({ set });
    await machine.load({ node: 0, name: 'p', run: async () => value as JsonValue });
    await machine.run();
    return (await machine.results())[0];
  };

  it.each([
    ['null', null],
    ['a number', -1.5],
    ['an object with lists', { a: [1, 'x', { b: true }], c: null }],
    ['one value twice', (({ shared }) => [shared, shared])({ shared: { x: 1 } })],
    ['an object without a prototype', Object.assign(Object.create(null), { x: 1 })],
  ])('equals the value after a JSON round trip: %s', async (_name, value) => {
    expect(await resultOf(value)).toEqual(JSON.parse(JSON.stringify(value)));
  });

  it('omits undefined properties, like JSON', async () => {
    expect(Object.keys((await resultOf({ a: undefined, b: 1 })) as object)).toEqual(['b']);
    expect(await resultOf(undefined)).toBeUndefined();
  });

  it.each([
    [5n, 'the program\'s result is "5n"'],
    [{ a: [1, Number.NaN] }, 'the program\'s result.a[1] is "NaN"'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [[undefined], 'the program\'s result[0] is "undefined"'],
    [cyclic, 'the program\'s result.self is "an object that contains itself"'],
    [deep, 'more than 500 levels deep'],
    [new Map(), 'an object of Map'],
    [new Date(0), 'an object of Date'],
    [Uint8Array.of(1), 'an object of Uint8Array'],
    [() => 0, 'a function'],
    [Symbol('s'), 'Symbol(s)'],
  ])('that JSON cannot represent ends the run with its place: %#', async (value, words) => {
    const error = await errorOf(() => resultOf(value));
    expect(error).toBeInstanceOf(RunError);
    expect((error as RunError).message).toContain('program p failed');
    expect((error as RunError).message).toContain(words);
    expect((error as RunError).message).toContain('JSON carries');
  });

  it.each(values.map((value) => [textOf(value), value]))(
    'log(%s) adds a line of text',
    async (_name, value) => {
      await using machine = await Machine.create({ set });
      await machine.load({ node: 0, run: async ({ log }: ProgramContext) => log(value as string) });
      await machine.run();
      for (const { text } of await machine.log()) expect(typeof text).toBe('string');
    },
  );

  it('an exchanged value that JSON would change is rejected with its place', async () => {
    await using machine = await Machine.create({ set });
    const value = { size: [1n] } as unknown as JsonValue;
    await machine.load({ node: 0, name: 'p', run: ({ exchange }) => exchange.put('v', value) });
    const error = await errorOf(() => machine.run());
    expect((error as RunError).message).toContain('exchange v.size[0] is "1n"');
  });
});
