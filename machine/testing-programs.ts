/** Programs of the specs, in a module of their own so that workers can load them. */
import type { JsonValue, ProgramContext } from './program.ts';

/** Sleeps for a microsecond and returns the time at which it woke. */
export async function nap({ cpu }: ProgramContext): Promise<JsonValue> {
  await cpu.sleep(1_000_000);
  await cpu.settle();
  return { wokePs: cpu.localPs };
}

/** Throws after a microsecond. */
export async function breakDown({ cpu }: ProgramContext): Promise<undefined> {
  await cpu.sleep(1_000_000);
  throw new TypeError('the program broke');
}

/** Waits for a value that is never sent. */
export async function waitForever({ exchange }: ProgramContext): Promise<JsonValue> {
  return exchange.take('nothing');
}

/** Never ends, and never yields its core for long. */
export async function runForever({ cpu }: ProgramContext): Promise<undefined> {
  for (;;) await cpu.sleep(10_000);
}

/** Writes a number into memory for the spec to find. */
export async function leaveMark({ memory, cpu }: ProgramContext): Promise<JsonValue> {
  const address = memory.map(8192);
  memory.write(address + 4092, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
  await cpu.sleep(1000);
  return { address, physical: memory.process.physicalAddress(address + 4092) };
}

/** Exchanges a value with the program of the other host. */
export async function exchangeNames({ exchange, cpu, node }: ProgramContext): Promise<JsonValue> {
  await exchange.put('name', { node });
  const sentPs = cpu.localPs;
  const found = await exchange.take('name');
  return { found, tookPs: cpu.localPs - sentPs };
}

const failing = (): never => {
  throw new Error('its own method');
};

/** Values that a program may throw, by name; most cannot be converted to text. */
const thrown: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  'without a prototype': () => Object.create(null),
  'whose toString throws': () => ({ toString: failing }),
  'whose message throws': () => Object.defineProperty(new Error('a'), 'message', { get: failing }),
  'that refuses every look': () => new Proxy({}, { get: failing, getPrototypeOf: failing }),
};
export const thrownNames = Object.keys(thrown);

/** Throws the value that `args` names, after a microsecond. */
export async function throwAnything({ cpu, args }: ProgramContext): Promise<void> {
  await cpu.sleep(1_000_000);
  throw thrown[String(args)]!();
}

/** Awaits a promise that never settles, after a microsecond. */
export async function awaitNothing({ cpu }: ProgramContext): Promise<void> {
  await cpu.sleep(1_000_000);
  await new Promise(() => {});
}

/** Awaits a timer of the real world. */
export async function awaitTimer({ cpu }: ProgramContext): Promise<JsonValue> {
  await new Promise((resolve) => setTimeout(resolve, 300));
  return cpu.localPs;
}

/** Values that cannot be handed to another thread, by name. */
const returned: Readonly<Record<string, () => unknown>> = {
  'a function': () => () => 1,
  'a list with a symbol': () => [Symbol('a')],
  'an object whose toJSON throws': () => ({ toJSON: failing }),
};
export const returnedNames = Object.keys(returned);

/** Returns the value that `args` names. */
export async function returnAnything({ args }: ProgramContext): Promise<JsonValue> {
  return returned[String(args)]!() as JsonValue;
}
