/**
 * Linux's Soft-iWARP (siw) on the interfaces of two adapters: its TCP runs over mlx4_en, and MPA, DDP and RDMAP over the cable. Stock
 * programs connect by rdma_cm over IPv4 and IPv6, with and without CRCs of MPA, and each guest is the server of the other.
 */
import { meetingPort } from '../image/init-scripts.ts';
import { addresses, type Guest, guests, inBoth, jumboMtu, lastFigures } from './ethernet-ends.ts';
import { killedStatus } from './peer.ts';
import type { Scenario, Step } from './scenario.ts';
import {
  attachSiw,
  crcWords,
  type MpaMode,
  setMpaMode,
  siwInterface,
  untilSiwCarrier,
} from './siw-interface.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** Addresses of the adapters' interfaces, by guest. */
const endpoints = { IPv4: addresses, IPv6: ['fd00:2::1', 'fd00:2::2'] } as const;
type Family = keyof typeof endpoints;

/** Sets the mode in both guests. */
async function setMode(stage: Stage, mode: MpaMode): Promise<void> {
  for (const guest of guests) await setMpaMode(stage, mode, guest);
}

/**
 * The server's siw replies to the MPA request before it receives as its QP (Linux 6.1, siw_cm.c, siw_accept). The client's first FPDU may
 * arrive in between, on a busy computer above all: TCP acknowledges it, nothing reads it, and both programs wait indefinitely.
 */
const attempts = 4;
const stuckSeconds = 30;

/**
 * Runs a server in one guest and its client in the other, again if both are stuck.
 * @param isDone whether the client's output says that all went well; left out: the exit status of both does
 * @returns what the client printed
 */
async function across(
  stage: Stage,
  server: Guest,
  sides: readonly [string, string],
  isDone?: (output: string) => boolean,
): Promise<string> {
  const client: Guest = server === 1 ? 0 : 1;
  for (let attempt = 1; ; attempt++) {
    await stage.check(`test-server '${sides[0]}'`, { guest: server });
    const { exitStatus, output } = await stage.run(`timeout -s KILL ${stuckSeconds} ${sides[1]}`, {
      guest: client,
    });
    if (isDone?.(output) ?? exitStatus === 0) {
      const end = await stage.run('test-server-end', { guest: server });
      if (isDone === undefined && end.exitStatus !== 0)
        throw new ScenarioFailure(`${sides[0]}:\n${end.output}`);
      return output;
    }
    const { output: served } = await stage.run('test-server-end 2', { guest: server });
    if (exitStatus !== killedStatus || attempt === attempts)
      throw new ScenarioFailure(`${sides[1]}: exit ${exitStatus}:\n${output}\n${served}`);
  }
}

/** Round trips of one rping. */
const pingCount = 3;

/**
 * The server READs the client's bytes and WRITEs them back; the client compares them, and then prints them. Exit statuses say nothing: a thread
 * of rping's may find its event channel closed at the end (rdma-core 44, rping.c).
 */
async function rping(stage: Stage, family: Family, server: Guest, sizeBytes: number): Promise<void> {
  const common = `-a ${endpoints[family][server]} -p ${meetingPort} -S ${sizeBytes} -C ${pingCount} -V -v`;
  const hasAll = (output: string): boolean => output.match(/^ping data/gm)?.length === pingCount;
  await across(stage, server, [`rping -s ${common}`, `rping -c ${common}`], hasAll);
}

/** rping's least and greatest; and the payload of one FPDU at an MTU of 1500 bytes, tagged, and one byte more (RFC 5044, 3). */
const sizes = [23, 1428, 1429, 65_535] as const;

const rpingStep = (family: Family, hasCrc: boolean): Step => ({
  title: `rping over ${family}, MPA ${crcWords(hasCrc)}: ${sizes.join(', ')} bytes there and back, data checked, both directions`,
  async run(stage) {
    await setMode(stage, { hasCrc });
    for (const server of guests) for (const sizeBytes of sizes) await rping(stage, family, server, sizeBytes);
    return `${guests.length * sizes.length * pingCount} pings`;
  },
});

/** Iterations of a perftest program, and bytes of its messages: of one FPDU and of many. */
const perftests = ['write', 'read', 'send'].flatMap((kind) => [
  `ib_${kind}_bw -n 5 -s 65536`,
  `ib_${kind}_lat -n 20 -s 64`,
]);

/** Debian 12's perftest (4.5) resolves addresses of IPv4 alone. */
const perftestStep = (hasCrc: boolean): Step => ({
  title: `ib_write, ib_read and ib_send, _bw and _lat, by rdma_cm, MPA ${crcWords(hasCrc)}, both directions`,
  async run(stage) {
    await setMode(stage, { hasCrc });
    let last = '';
    for (const server of guests)
      for (const command of perftests)
        last = await across(stage, server, [`${command} -R -F`, `${command} -R -F ${addresses[server]}`]);
    return lastFigures(last);
  },
});

const ucmatoseBytes = 5000;

const steps: readonly Step[] = [
  {
    title: 'Soft-iWARP is on the interface of both adapters, and the transport of its device is iWARP',
    async run(stage) {
      let said = '';
      await inBoth(
        stage,
        (guest) => `/bin/ip addr add ${endpoints.IPv6[guest]}/64 dev ${siwInterface} nodad`,
      );
      for (const guest of guests) said = await attachSiw(stage, guest);
      return said;
    },
  },
  ...([false, true] as const).flatMap((hasCrc) => [
    rpingStep('IPv4', hasCrc),
    rpingStep('IPv6', hasCrc),
    perftestStep(hasCrc),
  ]),
  {
    title: 'ucmatose connects, sends and disconnects over IPv6, both directions',
    async run(stage) {
      for (const server of guests) {
        const common = `-p ${meetingPort} -C 10 -S ${ucmatoseBytes}`;
        const address = endpoints.IPv6[server];
        await across(stage, server, [`ucmatose -b ${address} ${common}`, `ucmatose -s ${address} ${common}`]);
      }
      return undefined;
    },
  },
  {
    title:
      'in peer-to-peer mode the client sends a ready-to-receive message first, and rping checks its data',
    async run(stage) {
      await setMode(stage, { hasCrc: true, isPeerToPeer: true });
      for (const server of guests) await rping(stage, 'IPv4', server, 4096);
      return undefined;
    },
  },
  {
    title: `FPDUs fill frames of ${jumboMtu} bytes`,
    async run(stage) {
      await setMode(stage, { hasCrc: true });
      await inBoth(stage, () => `ip link set ${siwInterface} mtu ${jumboMtu}`);
      await inBoth(stage, () => untilSiwCarrier);
      for (const server of guests) await rping(stage, 'IPv6', server, 65_535);
      return undefined;
    },
  },
  {
    title: 'a client that finds no listener is refused',
    async run(stage) {
      // rping never ends after that.
      const output = await stage.checkFails(`ucmatose -s ${addresses[1]} -p ${meetingPort}`);
      if (!output.includes('Connection refused')) throw new ScenarioFailure(output);
      return undefined;
    },
  },
];

/** On the cable Soft-iWARP is TCP of a NIC, so neither end of it is the adapter's own. */
export const softIwarp: Scenario = {
  name: 'soft-iwarp',
  title: "Linux's Soft-iWARP over the mlx4_en of two guests: rping, perftest and ucmatose by rdma_cm",
  hcas: 2,
  isCabled: true,
  guests: 2,
  faults: [],
  hasSoftIwarp: true,
  set: { 'hca.capability.linkLayer': 'ethernet', 'ethernet.mtuBytes': jumboMtu },
  isLoaded: true,
  steps,
};
