/**
 * Packets are conserved, by the figures of the report alone: on each cable to a switch what left has arrived, or is missing under a name;
 * in each switch what came has left, waits, or is missing under a name.
 */
import type { Report } from '../../../machine/index.ts';
import { isOnEthernet, type PlayedFabric } from '../played.ts';

type Wire = Report['wire'][number];
const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

export function judgeBalance(played: PlayedFabric): string[] {
  const { report, error } = played;
  if (error !== undefined) return [];
  const own = Object.entries(report.checks).flatMap(([name, check]) =>
    typeof check === 'boolean' ? [] : check.failures.map((failure: string) => `${name}: ${failure}`),
  );
  return [...own, ...judgeCables(played), ...judgeLanes(played), ...judgeSwitches(played)];
}

/** Packets of a direction that should have arrived, least and most: a packet that a fault holds is lost if the link goes down meanwhile. */
export function dueOn(row: Wire, isEthernet: boolean): readonly [least: number, most: number] {
  const { packets, lost = 0, duplicated = 0, reordered = 0, dropped } = row;
  // Copies of frames are among the frames already, and frames that a fault held until the link went down among the lost ones.
  const due = packets - lost - dropped + (isEthernet ? 0 : duplicated);
  return [due - (isEthernet ? 0 : reordered), due];
}

function judgeCables(played: PlayedFabric): string[] {
  const { report } = played;
  return report.wire.flatMap((row) => {
    const { from, to, toPort = 1, corrupted } = row;
    const port = report.switches?.find(({ node }) => node === to)?.ports.find((each) => each.port === toPort);
    if (port === undefined) return [];
    const [least, most] = dueOn(row, isOnEthernet(played));
    const arrived = port.receivedPackets + corrupted;
    return arrived >= least && arrived <= most
      ? []
      : [`cable ${from} to ${to}: ${arrived} packets arrived of ${least} to ${most}`];
  });
}

/** Each data lane of a cable receives what was sent in it, unless packets were lost, dropped or copied; all lanes together are the cable's packets. */
function judgeLanes({ report }: PlayedFabric): string[] {
  return report.wire.flatMap(
    ({ from, to, lanes = [], lost = 0, dropped, packets, reordered = 0, duplicated = 0 }) => {
      const isWhole = lost + dropped + reordered + duplicated === 0;
      const sent = sumOf(lanes.map((lane) => lane.packets));
      const wrong = lanes.flatMap((lane, number) =>
        lane.receivedPackets > lane.packets || (isWhole && lane.receivedPackets < lane.packets)
          ? [
              `cable ${from} to ${to}: lane ${number} received ${lane.receivedPackets} packets of ${lane.packets}`,
            ]
          : [],
      );
      return isWhole && sent > packets
        ? [...wrong, `cable ${from} to ${to}: ${sent} packets in lanes, ${packets} in all`]
        : wrong;
    },
  );
}

function judgeSwitches({ report }: PlayedFabric): string[] {
  return (report.switches ?? []).flatMap(({ node, ports, copies }) => {
    const out = report.wire.filter(({ from }) => from === node);
    const isEthernet = ports.some(({ output }) => output !== undefined);
    const left = sumOf(
      out.map((row) => row.packets + row.discarded - (isEthernet ? (row.duplicated ?? 0) : 0)),
    );
    const kept = sumOf(
      ports.map(
        ({ notForwarded, waitingPackets, output }) =>
          sumOf(Object.values(notForwarded)) +
          (isEthernet ? (output?.queueDrops ?? 0) + (output?.watchdogDrops ?? 0) : waitingPackets),
      ),
    );
    const came = sumOf(ports.map(({ receivedPackets }) => receivedPackets)) + copies;
    const waits = isEthernet ? sumOf(ports.map(({ waitingPackets }) => waitingPackets)) : 0;
    return came === left + kept && waits === 0
      ? []
      : [`switch ${node}: ${came} packets came, ${left} left, ${kept} were kept, ${waits} wait`];
  });
}
