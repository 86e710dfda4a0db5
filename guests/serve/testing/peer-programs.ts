/** Programs of a simulated host next to a guest, for specs: modules, since they run in the serving thread. */

import { acceptGuest, connectGuest } from '../../../experiments/workloads/index.ts';
import type { ProgramContext } from '../../../machine/index.ts';

/** Accepts one connection of the guest and sends back the received bytes, until its end. @returns its bytes */
export async function echo(program: ProgramContext): Promise<number> {
  const stream = await acceptGuest(program);
  for (let count = 0; ; ) {
    const bytes = await stream.read(1000);
    count += bytes.length;
    if (bytes.length === 0) {
      await stream.end();
      return count;
    }
    await stream.write(bytes);
  }
}

/** Connects to a port of the guest, sends 5000 bytes, and receives as many. @returns the sum of the received bytes */
export async function call(program: ProgramContext): Promise<number> {
  const stream = await connectGuest(program, Number(program.args));
  await stream.write(Uint8Array.from({ length: 5000 }, (_, at) => at));
  const bytes = await stream.readAll(5000);
  await stream.end();
  return bytes.reduce((sum, byte) => sum + byte, 0);
}

/** A program that fails. */
export async function fail({ cpu }: ProgramContext): Promise<void> {
  await cpu.sleep(1e6);
  throw new RangeError('of its own');
}

/** Does two things at once on one core, which ends its host. */
export async function misuse({ cpu }: ProgramContext): Promise<void> {
  await Promise.all([cpu.sleep(1e6), cpu.sleep(1e6)]);
}

/** Reports that it has begun, and waits indefinitely. */
export async function wait({ exchange }: ProgramContext): Promise<void> {
  await exchange.put('begun', true);
  await exchange.take('what never comes');
}
