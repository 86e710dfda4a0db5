/** Time to register and deregister one buffer in a program, by its own clock. */
import { pageBytes } from '../../../base/index.ts';
import type { ProgramContext } from '../../../machine/index.ts';
import { deregMr, regMr } from '../../../userlib/index.ts';
import { allAccess, createBuffer, openEndpoint } from '../../workloads/index.ts';
import type { RegistrationPoint } from '../points.ts';

export interface RegistrationResult {
  readonly registerPs: number;
  readonly deregisterPs: number;
}

/** Another region exists meanwhile, and the buffer is registered once before the timing, so that there are no first-time costs. */
export async function registrar(program: ProgramContext<RegistrationPoint>): Promise<RegistrationResult> {
  const { cpu, memory, args } = program;
  const { pages } = args;
  const endpoint = await openEndpoint(program);
  const kept = await createBuffer(endpoint, pageBytes);
  const lengthBytes = pages * pageBytes;
  const address = memory.map(lengthBytes);
  await memory.touch(address, lengthBytes, 'write');
  const time = async (): Promise<RegistrationResult> => {
    await cpu.settle();
    const startPs = cpu.localPs;
    const region = await regMr(endpoint.pd, address, lengthBytes, allAccess);
    const registeredPs = cpu.localPs;
    await deregMr(region);
    return { registerPs: registeredPs - startPs, deregisterPs: cpu.localPs - registeredPs };
  };
  await time();
  const result = await time();
  await deregMr(kept.region);
  return result;
}
