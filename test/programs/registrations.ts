/** Costs of registering and deregistering for a program, by its own clock, for several sizes. */
import { pageBytes } from '../../base/index.ts';
import { allAccess } from '../../experiments/workloads/rc-states.ts';
import type { ProgramContext } from '../../machine/program.ts';
import { deregMr, regMr } from '../../userlib/index.ts';
import { Side } from './side.ts';

export interface RegistrationRow {
  readonly pages: number;
  readonly registerPs: number;
  readonly deregisterPs: number;
}

/**
 * Registers buffers of this many present pages, one after another. A small region exists meanwhile, and each size is registered
 * once before it is timed: the translation tables are then mapped.
 */
export async function registrar(program: ProgramContext): Promise<RegistrationRow[]> {
  const { cpu, memory, args } = program;
  const { pages: sizes } = args as { readonly pages: readonly number[] };
  const side = await Side.open(program);
  const kept = await regMr(side.pd, memory.map(pageBytes), pageBytes, allAccess);
  const rows: RegistrationRow[] = [];
  for (const pages of sizes) {
    const lengthBytes = pages * pageBytes;
    const address = memory.map(lengthBytes);
    await memory.touch(address, lengthBytes, 'write');
    const time = async (): Promise<RegistrationRow> => {
      await cpu.settle();
      const startPs = cpu.localPs;
      const region = await regMr(side.pd, address, lengthBytes, allAccess);
      const registeredPs = cpu.localPs;
      await deregMr(region);
      return { pages, registerPs: registeredPs - startPs, deregisterPs: cpu.localPs - registeredPs };
    };
    await time();
    rows.push(await time());
  }
  await deregMr(kept);
  return rows;
}
