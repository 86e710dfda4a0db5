/** Programs that never end by themselves, for test/called-off.spec.ts. */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';

/** Sleeps, works and logs, without end. */
export async function worksOn({ cpu, log, memory }: ProgramContext): Promise<JsonValue> {
  log('begun');
  const address = memory.map(4096);
  for (let round = 0; ; round++) {
    memory.write(address, Uint8Array.of(round & 0xff));
    cpu.charge('application', 100);
    await cpu.sleep(1_000_000);
  }
}

/** Awaits something outside simulated time. */
export async function waitsForTheWorld({ log }: ProgramContext): Promise<void> {
  log('begun');
  await new Promise(() => undefined);
}
