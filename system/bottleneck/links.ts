/** The cable and the PCIe links, by direction. */
import { testShareOf } from './blocks.ts';
import { isEthernet, type Measured, more, type Resource } from './measured.ts';

const pcieTurn = more('pcie.link.generation', 'pcie.link.lanes', 'pcie.link.maxPayloadBytes');
const wireTurn = more('wire.speed', 'wire.lanes', '--mtu');
const ethernetTurn = more('ethernet.gigabitsPerSecond', 'ethernet.mtuBytes', '--mtu');

export function linkResources({ config, figures, durationPs }: Measured): Resource[] {
  const cables = figures.wire.map(
    ({ from, to, busyPs }): Resource => ({
      name: `cable from host ${from} to ${to}`,
      kind: 'server',
      share: busyPs / durationPs,
      turn: isEthernet(config) ? ethernetTurn : wireTurn,
    }),
  );
  const slots = figures.nodes.flatMap(({ pcie }, node) =>
    (['toDevice', 'toHost'] as const).map((direction): Resource => {
      const share = (pcie[direction].busyPs * testShareOf(pcie[direction])) / durationPs;
      const name = `PCIe link of host ${node} ${direction === 'toHost' ? 'to the host' : 'to the device'}`;
      return { name, kind: 'server', share, turn: pcieTurn };
    }),
  );
  return [...cables, ...slots];
}
