/** Port counters of the performance agent and of the kernel's files, next to the known traffic of the cable. */
import type { Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

const count = 40;
const messageBytes = 65_536;
const mtu = 2048;
/**
 * A WRITE of 64 KiB in packets of 2048 bytes: 32 packets, each with LRH 8, BTH 12 and ICRC 4 bytes, and an RETH of 16 in the
 * first. The counters count dwords of them. IBA 9.2, 9.3.3, 16.1.3.5.
 */
const packets = count * (messageBytes / mtu);
const dwords = (count * messageBytes + packets * 24 + count * 16) / 4;

type Counters = Readonly<Record<'xmit_data' | 'rcv_data' | 'xmit_packets' | 'rcv_packets', number>>;

/** Reads the counters from the kernel's files, which show the extended counters. */
async function countersOf(stage: Stage, device: string): Promise<Counters> {
  const names = ['xmit_data', 'rcv_data', 'xmit_packets', 'rcv_packets'] as const;
  const files = names.map((name) => `/sys/class/infiniband/${device}/ports/1/counters/port_${name}`);
  const values = (await stage.check(`cat ${files.join(' ')}`)).trim().split('\n').map(Number);
  return Object.fromEntries(names.map((name, index) => [name, values[index]!])) as Counters;
}

/** Reads the 32-bit counters with perfquery, over the device's own QP1. */
async function queried(stage: Stage, device: string): Promise<string> {
  return await stage.check(`perfquery -C ${device}`);
}

function demandEqual(what: string, found: number, expected: number): void {
  if (found !== expected) throw new ScenarioFailure(`${what}: ${found}, expected ${expected}`);
}

/** Counters between two adapters of a guest, `mlx4_1` to `mlx4_0`. */
export const countersStep: Step = {
  title: `perfquery and sysfs count ${count} writes of 64 KiB to the dword`,
  async run(stage) {
    const options = `-F -n ${count} -s ${messageBytes} -m ${mtu}`;
    const before = [await countersOf(stage, 'mlx4_0'), await countersOf(stage, 'mlx4_1')] as const;
    for (const device of ['mlx4_0', 'mlx4_1']) await stage.check(`perfquery -R -C ${device}`);
    await stage.pair({
      server: `ib_write_bw -d mlx4_0 ${options}`,
      client: `ib_write_bw -d mlx4_1 ${options} localhost`,
    });
    const after = [await countersOf(stage, 'mlx4_0'), await countersOf(stage, 'mlx4_1')] as const;
    demandEqual('packets sent', after[1].xmit_packets - before[1].xmit_packets, packets);
    demandEqual('dwords sent', after[1].xmit_data - before[1].xmit_data, dwords);
    demandEqual('packets received', after[0].rcv_packets - before[0].rcv_packets, packets);
    demandEqual('dwords received', after[0].rcv_data - before[0].rcv_data, dwords);
    const listing = await queried(stage, 'mlx4_0');
    for (const line of [/CapMask: 0x1400/, new RegExp(`PortRcvData:\\.+${dwords}\n`)])
      if (!line.test(listing)) throw new ScenarioFailure(`no ${line} in:\n${listing}`);
    await stage.check('perfquery -R -C mlx4_0');
    const cleared = await queried(stage, 'mlx4_0');
    if (!/PortRcvData:\.+0\n/.test(cleared)) throw new ScenarioFailure(cleared);
    return `${dwords} dwords in ${packets} packets`;
  },
};
