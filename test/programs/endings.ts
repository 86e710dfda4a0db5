/** Programs that end badly, or not at all. */
import type { JsonValue, ProgramContext } from '../../system/program.ts';
import { Side } from './side.ts';

const sleepPs = 100e6;

/** Opens the device, waits 250 µs, and throws. */
export async function throws({ cpu, name, verbs }: ProgramContext): Promise<JsonValue> {
  await cpu.sleep(250e6);
  throw new RangeError(`${name} has ${verbs.devices.length} device and gives up`);
}

/** Waits for what nobody sends. */
export async function waitsForNothing(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  return side.hear('nothing');
}

/** Never ends. */
export async function goesOn({ cpu }: ProgramContext): Promise<JsonValue> {
  for (;;) await cpu.sleep(sleepPs);
}
