/** The start of programs on many hosts: pairs connect one after another, then all agree on an instant. */
import { psPerMs } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';

/** From the agreement to the common start. */
const startLeadPs = psPerMs / 2;

/** The instant at which all hosts begin: host 0 names it when all are ready. */
export async function commonStart(
  { node, exchange, cpu }: ProgramContext,
  hostCount: number,
): Promise<number> {
  const others = Array.from({ length: hostCount - 1 }, (_, index) => index + 1);
  if (node !== 0) {
    await exchange.put('fabric.ready', node, [0]);
    return await exchange.take<number>('fabric.start');
  }
  for (const _ of others) await exchange.take('fabric.ready');
  await cpu.settle();
  const startPs = Number(cpu.instantPs) + exchange.latencyPs + startLeadPs;
  await exchange.put('fabric.start', startPs, others);
  return startPs;
}
