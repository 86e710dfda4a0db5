/**
 * How the programs of the store begin to measure at the same instant. Threads of one host agree through the other host,
 * because the exchange connects only different hosts:
 *
 *     server s ── served ──► client 0 ─┐
 *                            client c ─┴─ up ──► server 0 ── instant ──► clients; client 0 ── instant ──► server s
 *
 * Then all sleep until that instant. Nothing is in flight before it, so that counters can be read there.
 */
import type { ProgramContext } from '../../machine/index.ts';
import type { KvArgs } from './kv-plan.ts';
import { announceStart, startLeadPs } from './perf-start.ts';

/** For a client: waits for the common start. */
export async function clientBegins(program: ProgramContext<KvArgs>): Promise<void> {
  const { exchange, args } = program;
  const { kv, thread = 0 } = args;
  if (thread === 0) for (let server = 1; server < kv.servers; server++) await exchange.take('kv.served');
  await exchange.put('kv.up', true);
  const startPs = await exchange.take<number>(`kv.go.${thread}`);
  if (thread === 0)
    for (let server = 1; server < kv.servers; server++) await exchange.put(`kv.serve.${server}`, startPs);
  meterFrom(program, startPs);
  await sleepUntil(program, startPs);
}

/** For a server thread. */
export async function serverBegins(program: ProgramContext<KvArgs>): Promise<void> {
  const { exchange, cpu, args } = program;
  const { threads = 1, thread = 0 } = args;
  if (thread > 0) {
    await exchange.put('kv.served', true);
    await sleepUntil(program, await exchange.take<number>(`kv.serve.${thread}`));
    return;
  }
  for (let client = 0; client < threads; client++) await exchange.take('kv.up');
  await cpu.settle();
  const startPs = Number(cpu.instantPs) + startLeadPs;
  announceStart(program, startPs);
  for (let client = 0; client < threads; client++) await exchange.put(`kv.go.${client}`, startPs);
  meterFrom(program, startPs);
  await sleepUntil(program, startPs);
}

function meterFrom({ args, meter }: ProgramContext<KvArgs>, startPs: number): void {
  if (args.load !== undefined) meter.beginAt(startPs);
}

const sleepUntil = ({ cpu }: ProgramContext, startPs: number): Promise<void> =>
  cpu.sleep(startPs - Number(cpu.instantPs));
