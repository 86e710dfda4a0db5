/**
 * Judges impossible stalls: reads of a device that find the link's fifo full although it has room for as many reads as
 * there are tags. A device sends no other non-posted TLP, so such a read waits only for a tag.
 */
import type { Played } from '../run-story.ts';

export function judgeStalls({ config, report, error }: Played): string[] {
  if (error !== undefined || config.dma.tagCount > config.pcie.endpointPort.nonPostedFifoTlps) return [];
  return report.nodes.flatMap(({ hca }, node) => {
    const cycles = hca?.blocks['dmaRead']?.stalledCycles['link'] ?? 0;
    return cycles === 0
      ? []
      : [`node ${node}: the read engine waited ${cycles} cycles for the link, which had room for every read`];
  });
}
