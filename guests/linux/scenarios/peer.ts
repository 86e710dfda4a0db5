/**
 * Stock programs in a guest, and our programs on a simulated host at the other end of its cable: `ibv_rc_pingpong` and `rping`,
 * either side of each. Both ends check received data.
 */

import { constants as os } from 'node:os';
import type {
  CounterpartOutcome,
  CounterpartTask,
  SocketTask,
} from '../../../experiments/workloads/index.ts';
import type { ProgramModule } from '../../../machine/index.ts';
import { peerAddresses } from '../peer-network.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** One of the two sides has failed. */
export class SideFailure extends ScenarioFailure {
  /** The guest's side was still running when its time was over. */
  readonly isStuck: boolean;

  constructor(message: string, isStuck: boolean) {
    super(message);
    this.isStuck = isStuck;
  }
}

/**
 * Runs our program's side while the guest runs `command`.
 * @param isListening whether it reports when the guest's client can connect
 * @param seconds limit of the guest's side
 * @throws SideFailure if either fails
 */
export async function play(
  stage: Stage,
  task: CounterpartTask | SocketTask,
  command: string,
  isListening: boolean,
  seconds = stepSeconds,
): Promise<string> {
  const { peer: program } = stage;
  program.put('task', { ...task });
  if (isListening) await program.take('listening', listeningMs);
  const { output, exitStatus } = await stage.run(`timeout -s KILL ${seconds} ${command}`);
  // If the guest's side has failed, the simulated one may wait for it indefinitely.
  const outcome = await outcomeOf(stage);
  if ('error' in outcome || exitStatus !== 0) {
    const seen = JSON.stringify(outcome);
    const isStuck = exitStatus === killedStatus;
    throw new SideFailure(`${command}: exit ${exitStatus}; the peer: ${seen}\n${output}`, isStuck);
  }
  return output;
}

/** Outcome of the simulated host's task, when the guest's side has ended. */
export const outcomeOf = async ({ peer: program }: Stage): Promise<CounterpartOutcome> =>
  ((await program.take('done', patienceMs)) as CounterpartOutcome | undefined) ?? {
    error: 'it waits, or its program has ended',
  };

/** Exit status of a program that `timeout -s KILL` ended. */
export const killedStatus = 128 + os.signals.SIGKILL;

/** Each side waits indefinitely for one that has failed. */
const stepSeconds = 120;
const patienceMs = 30_000;
/** Setting up the simulated host's side takes this long at most. */
const listeningMs = 120_000;

const iterations = 50;

const lineOf = (output: string, pattern: RegExp): string | undefined =>
  output.split('\n').find((line) => pattern.test(line));

/** Messages there and back, of 1 byte, of one packet, and of several. */
export const pingPongSizes = [1, 64, 4096, 10_000] as const;

/** Indices of GIDs in the tables of the guest and of the simulated host. */
export interface GidPair {
  readonly guest: number;
  readonly peer: number;
}

/** Ping-pongs of these sizes; the output of the guest's side for the last. @throws ScenarioFailure for wrong bytes at either end */
export async function pingPongs(
  stage: Stage,
  guest: 'client' | 'server',
  sizes: readonly number[],
  gids?: GidPair,
): Promise<string | undefined> {
  let last = '';
  for (const sizeBytes of sizes) {
    const options = `-c -s ${sizeBytes} -n ${iterations}${gids === undefined ? '' : ` -g ${gids.guest}`}`;
    const command = `ibv_rc_pingpong ${options}${guest === 'client' ? ' peer' : ''}`;
    const place = gids === undefined ? {} : { gidIndex: gids.peer };
    const task = { program: 'ibv_rc_pingpong', guest, sizeBytes, iterations, ...place } as const;
    last = await play(stage, task, command, false);
    if (/invalid data/.test(last)) throw new ScenarioFailure(last);
  }
  return lineOf(last, /iters in/);
}

const pingPongStep = (guest: 'client' | 'server'): Step => ({
  title: `ibv_rc_pingpong: the guest is the ${guest}; 1 to 10,000 bytes, data checked`,
  run: (stage) => pingPongs(stage, guest, pingPongSizes),
});

/** Messages of an rping run. */
const pingCount = 10;
/** The last of them, as rping prints it. */
const lastPing = 'ping data: rdma-ping-9: JKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyzA';

/**
 * Command of a guest's rping as server, which exits with 1 when its client has ended. Its time limit is that of rping itself: a
 * shell around it would be killed alone, and leave it listening.
 */
export const rpingServer = (options: string): string =>
  `rping -s ${options} || { status=$?; [ $status -eq 1 ] || (exit $status); }`;

/**
 * rping, with the guest on either side; the last ping in the guest's output.
 * @param addresses of the guest and of the simulated host
 * @throws ScenarioFailure for wrong bytes at either end
 */
export async function ping(
  stage: Stage,
  guest: 'client' | 'server',
  addresses: { readonly guest: string; readonly peer: string },
): Promise<string> {
  const task = { program: 'rping', guest, address: addresses.guest, count: pingCount } as const;
  const output = await (guest === 'client'
    ? play(stage, task, `rping -c -a ${addresses.peer} -C ${pingCount} -V -v`, true)
    : play(stage, task, rpingServer(`-a :: -C ${pingCount} -v`), false));
  const last = output.split('\n').find((line) => line.endsWith(lastPing));
  if (last === undefined) throw new ScenarioFailure(output);
  return last;
}

const rpingStep = (guest: 'client' | 'server'): Step => ({
  title: `rping: the guest is the ${guest}, connections by rdma_cm, data checked`,
  async run(stage) {
    await stage.check('peer-ip');
    return await ping(stage, guest, peerAddresses);
  },
});

export const endStep: Step = {
  title: 'the program of the simulated host ends when it is told to',
  async run({ peer: program }) {
    program.put('task', null);
    const { outcome, result, error = '' } = await program.ended();
    if (outcome !== 'ended') throw new ScenarioFailure(`${outcome}: ${error}`);
    return `${String(result)} tasks`;
  },
};

/** A program of experiments/workloads, by its file and its name there. */
export const workload = (file: string, exportName: string): ProgramModule => ({
  url: new URL(
    `../../../experiments/workloads/${file}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
    import.meta.url,
  ),
  exportName,
});

export const peer: Scenario = {
  name: 'peer',
  title: 'Stock programs and programs of ours, at the two ends of a cable',
  hcas: 1,
  isCabled: true,
  guests: 1,
  faults: [],
  peer: workload('guest-counterpart', 'guestCounterpart'),
  isLoaded: true,
  steps: [pingPongStep('client'), pingPongStep('server'), rpingStep('client'), rpingStep('server'), endStep],
};
