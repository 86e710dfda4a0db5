/**
 * The tests that move data: the ping-pong programs of rdma-core and perftest, in the forms that the adapter must support. If a
 * tool can check received data (`-c`, `--validate_buf`), it does.
 */
import type { Step } from './scenario.ts';
import type { PairedTest, Stage } from './stage.ts';

/** Locations of the two sides of a test. */
export interface Route {
  readonly serverDevice: string;
  readonly clientDevice: string;
  /** The server's host name for the client. */
  readonly host: string;
  run(stage: Stage, test: PairedTest): Promise<string>;
}

/** Sizes around every boundary of a message: none, cache line, page, MTU, many packets. */
const pingPongSizes = [1, 64, 2047, 2048, 2049, 4096, 65_536, 1_048_576];

const pathMtus = [256, 512, 1024, 2048, 4096];

/** Bytes of a message that spans packets of every MTU, with a partial last one. */
const mtuMessageBytes = 10_000;

const both = (route: Route, command: string): PairedTest => ({
  server: command.replace('{device}', `-d ${route.serverDevice}`),
  client: `${command.replace('{device}', `-d ${route.clientDevice}`)} ${route.host}`,
});

/** A step that runs the commands one after another. `{device}` represents the option that names the adapter. */
function stepOf(route: Route, title: string, commands: readonly string[]): Step {
  return {
    title,
    async run(stage) {
      let last = '';
      for (const command of commands) last = await route.run(stage, both(route, command));
      return resultLine(last);
    },
  };
}

/** The line with the figures in a tool's output. */
const resultLine = (output: string): string | undefined =>
  output
    .split('\n')
    .filter((line) => /^\s*\d+.*\d/.test(line))
    .at(-1)
    ?.trim()
    .replace(/\s+/g, ' ');

const rc = 'ibv_rc_pingpong {device}';

/** The simplest ping-pongs of rdma-core, which every arrangement of adapters runs. */
export function plainPingPongSteps(route: Route): Step[] {
  return [
    stepOf(route, 'ibv_rc_pingpong: polling', [`${rc} -n 100`]),
    stepOf(route, 'ibv_rc_pingpong: events, data checked', [`${rc} -e -c -n 100`]),
    stepOf(route, 'ibv_rc_pingpong: timestamps of completions', [`${rc} -t -c -n 100`]),
    stepOf(route, 'ibv_rc_pingpong: by GID, with a GRH', [`${rc} -c -n 50 -g 0`]),
  ];
}

/** Messages of any length. */
export function sizesStep(route: Route): Step {
  return stepOf(
    route,
    'ibv_rc_pingpong: 1 byte to 1 MiB, data checked',
    pingPongSizes.map((size) => `${rc} -c -n 5 -s ${size}`),
  );
}

/** Packets of any length. */
export function mtuStep(route: Route): Step {
  return stepOf(
    route,
    'ibv_rc_pingpong: MTU 256 to 4096, data checked',
    pathMtus.map((mtu) => `${rc} -c -n 5 -m ${mtu} -s ${mtuMessageBytes}`),
  );
}

/** Its ping-pongs over services without acknowledgements. */
export function unreliableStep(route: Route): Step {
  return stepOf(route, 'ibv_uc_pingpong and ibv_ud_pingpong: data checked', [
    'ibv_uc_pingpong {device} -c -n 50',
    'ibv_ud_pingpong {device} -c -n 50',
  ]);
}

/** Its ping-pongs with shared receive queues. */
export function sharedReceiveSteps(route: Route): Step[] {
  return [
    stepOf(route, 'ibv_srq_pingpong: polling, and events with data checked', [
      'ibv_srq_pingpong {device} -n 100',
      'ibv_srq_pingpong {device} -e -c -n 100',
    ]),
    stepOf(route, 'ibv_xsrq_pingpong: extended reliable connections', [
      'ibv_xsrq_pingpong {device} -n 50 -c 1',
      'ibv_xsrq_pingpong {device} -e -n 50 -c 1',
    ]),
  ];
}

/**
 * perftest: every operation. A queue has room for 128 requests: a rate test uses each slot once.
 *
 * Latency is reported in cycles: for other units, each side would first measure the processor's clock for a quarter of a second.
 */
export function operationsSteps(route: Route): Step[] {
  return [
    stepOf(route, 'ib_write_lat and ib_write_bw', [
      'ib_write_lat {device} -n 50 -C',
      'ib_write_bw {device} -n 200',
    ]),
    stepOf(route, 'ib_read_lat and ib_read_bw', [
      'ib_read_lat {device} -n 50 -C',
      'ib_read_bw {device} -n 200',
    ]),
    stepOf(route, 'ib_send_lat and ib_send_bw', [
      'ib_send_lat {device} -n 50 -C',
      'ib_send_bw {device} -n 200',
    ]),
    stepOf(route, 'ib_atomic_lat and ib_atomic_bw: compare and swap, fetch and add', [
      'ib_atomic_lat {device} -n 50 -A CMP_AND_SWAP -C',
      'ib_atomic_bw {device} -n 200 -A FETCH_AND_ADD',
    ]),
  ];
}

/** perftest: every operation once, by either measure. */
export function briefOperationsStep(route: Route): Step {
  return stepOf(route, 'perftest writes, reads, sends, compares and swaps', [
    'ib_write_bw {device} -n 200',
    'ib_read_lat {device} -n 50 -C',
    'ib_send_lat {device} -n 50 -C',
    'ib_atomic_bw {device} -n 100 -A CMP_AND_SWAP',
  ]);
}

/** perftest: several QPs saturate a path. */
export function queuePairsStep(route: Route): Step {
  return stepOf(route, 'several QPs', [
    'ib_write_bw {device} -n 140 -q 8 -s 4096',
    'ib_read_bw {device} -n 50 -q 4 -s 4096',
    'ib_send_bw {device} -n 50 -q 4 -s 4096',
  ]);
}

/** perftest: traffic in both directions. */
export function bothDirectionsStep(route: Route): Step {
  return stepOf(route, 'both directions at once', [
    'ib_write_bw {device} -n 200 -b',
    'ib_send_bw {device} -n 150 -b',
  ]);
}

/** perftest: the variants of requesting an operation. */
export function formsSteps(route: Route): Step[] {
  return [
    stepOf(route, 'inline data', [
      'ib_write_bw {device} -n 300 -s 64 -I 64',
      'ib_send_lat {device} -n 50 -s 32 -I 64 -C',
    ]),
    stepOf(route, 'events', [
      'ib_send_bw {device} -n 150 -e',
      'ib_send_lat {device} -n 50 -e -C',
      'ib_read_lat {device} -n 50 -e -C',
    ]),
    stepOf(route, 'unreliable services', [
      'ib_write_bw {device} -n 200 -c UC',
      'ib_send_bw {device} -n 200 -c UD -s 1024',
    ]),
    stepOf(route, 'extended reliable connections', [
      'ib_send_bw {device} -n 150 -c XRC',
      'ib_write_bw {device} -n 50 -c XRC -q 2',
      'ib_read_bw {device} -n 50 -c XRC',
      'ib_atomic_bw {device} -n 50 -c XRC',
      'ib_send_lat {device} -n 50 -c XRC -C',
    ]),
  ];
}

/** The longest messages of perftest, which sends each of them at least five times. */
export function longestStep(route: Route): Step {
  return stepOf(route, 'ib_write_lat: 8 MiB', [`ib_write_lat {device} -s ${2 ** 23} -n 5 -C`]);
}

/** Long messages for perftest's READ and SEND: with longer ones, filling buffers byte by byte would take most of the time. */
export function longSteps(route: Route): Step[] {
  return (['read', 'send'] as const).map((operation) =>
    stepOf(route, `ib_${operation}_bw: 2 MiB`, [`ib_${operation}_bw {device} -s ${2 ** 21} -n 5`]),
  );
}
