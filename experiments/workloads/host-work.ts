/** The work of a host under an offered load, from the start to the last completion of the client. */
import { endLabel, type ProgramContext } from '../../machine/index.ts';
import type { HostWork } from './perf-result.ts';

/** All messages of this program have completed. */
export async function endOwnWork({ cpu, meter, exchange }: ProgramContext): Promise<void> {
  await cpu.settle();
  meter.end();
  await exchange.put(endLabel, true);
}

/** Waits until a program of the other host has ended. */
export const awaitPeerEnd = ({ exchange }: ProgramContext): Promise<unknown> => exchange.take(endLabel);

/** @returns the work up to the last observed end */
export function hostWorkOf({ meter }: ProgramContext): { readonly host?: HostWork } {
  const spent = meter.spent();
  if (spent === undefined) return {};
  return { host: { spanPs: meter.spanPs, interrupts: spent.interrupts, cycles: spent.cyclesTotal } };
}
