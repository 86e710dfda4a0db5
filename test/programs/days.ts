/** Programs that run for days: they measure with their own stopwatch, and read the clock in whole picoseconds since power-on. */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { IbvWc, pollCq, postSend } from '../../userlib/index.ts';
import { take } from './outcomes.ts';
import { remoteAt, segment, writeOf } from './requests.ts';
import { Side } from './side.ts';

const ms = 1e9;
const second = 1e12;

/** Sleeps until a whole number of milliseconds since power-on: there every clock has the same phase as at the start. */
async function untilWholeMs({ cpu }: ProgramContext): Promise<void> {
  const restPs = Number(BigInt(ms) - (BigInt(cpu.instantPs) % BigInt(ms)));
  await cpu.sleep(restPs);
}

/** Picoseconds of this many WRITEs, one after another, each from posting to its completion in the program. */
async function measured(program: ProgramContext, side: Side, args: { label: string }): Promise<number[]> {
  const pair = await side.pair(args.label, { timeoutCode: 14 });
  const { qp, buffer, sendCq } = pair;
  const took: number[] = [];
  // The first ones fill caches.
  for (let turn = 0; turn < 6; turn++) {
    await untilWholeMs(program);
    const watch = program.cpu.stopwatch();
    postSend(qp, writeOf([segment(buffer, 0, 2000)], remoteAt(pair, 2048), { wrId: turn }));
    await take(sendCq, 1);
    took.push(watch.elapsedPs);
  }
  await side.barrier(`${args.label} done`);
  return took;
}

/** Measures WRITEs, sleeps for days, measures them again. */
export async function sleeper(program: ProgramContext): Promise<JsonValue> {
  const { cpu, args } = program;
  const { days } = args as { days: number };
  const side = await Side.open(program);
  const before = await measured(program, side, { label: 'before' });
  const fromPs = BigInt(cpu.instantPs);
  await cpu.sleep(days * 86_400 * second);
  const sleptPs = BigInt(cpu.instantPs) - fromPs;
  const after = await measured(program, side, { label: 'after' });
  return { before, after, sleptPs: sleptPs.toString(), refusal: refusalOf(() => cpu.localPs) };
}

/** The passive end: only its device works. */
export async function target(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  for (const label of ['before', 'after']) {
    await side.pair(label, { timeoutCode: 14 });
    await side.barrier(`${label} done`);
  }
  return null;
}

function refusalOf(read: () => unknown): string {
  try {
    return String(read());
  } catch (error) {
    return (error as Error).message;
  }
}

/** Posts a WRITE that is never answered, and polls for its completion every quarter of an hour. */
export async function patient(program: ProgramContext): Promise<JsonValue> {
  const { cpu, args } = program;
  const options = args as { timeoutCode: number; retryCount: number };
  const side = await Side.open(program);
  const pair = await side.pair('patient', options);
  await side.barrier('quiet');
  program.progress(1, 2);
  await cpu.sleep(ms);
  await untilWholeMs(program);
  const watch = cpu.stopwatch();
  postSend(pair.qp, writeOf([segment(pair.buffer, 0, 200)], remoteAt(pair, 2048)));
  const wc = [new IbvWc()];
  while ((await pollCq(pair.sendCq, 1, wc)) === 0) await cpu.sleep(900 * second);
  const tookPs = watch.exactElapsedPs.toString();
  const state = await side.stateOf(pair);
  await side.barrier('over');
  return { status: wc[0]!.status, tookPs, state };
}

export async function patientsPeer(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  await side.pair('patient', {});
  await side.barrier('quiet');
  await side.barrier('over');
  return null;
}
