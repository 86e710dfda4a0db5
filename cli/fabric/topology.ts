/** `hca topology`: a topology, checked and drawn: its hosts, switches and cables, and the lengths of the routes through it. */
import type { Command } from 'commander';
import { countedText, countText } from '../../explain/text/format.ts';
import {
  fabricRoutesOf,
  hostsOf,
  parsedTopology,
  portsOnRoute,
  readyMadeNames,
  switchesOf,
  type Topology,
  topologyText,
} from '../../machine/topology/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from '../html-output.ts';
import { jsonText, Screen, writeOutput } from '../output.ts';
import { topologyPage } from './fabric-page.ts';

interface TopologyOptions extends HtmlChoice {
  readonly json?: string;
}

export function addTopologyCommand(program: Command): void {
  program
    .command('topology')
    .description('check a topology and draw it: hosts, switches, cables, and the lengths of routes')
    .argument('<topology>', `a JSON file, links such as 0-2,1-3, or one of ${readyMadeNames.join(', ')}`)
    .option('--json <file>', 'write it as a file for --topology; - is standard output')
    .option(...htmlOption)
    .action(showTopology);
}

function showTopology(text: string, options: TopologyOptions, command: Command): void {
  const topology = parsedTopology(text);
  checkWritable(options.json);
  checkWritable(options.html);
  const screen = new Screen(options.json);
  const sentences = topologySentences(topology);
  for (const sentence of sentences) screen.print(sentence);
  const ran = { title: `Topology ${text}`, words: [text], sentences };
  writePage(options, () => topologyPage(headOf(command, ran), topology), screen);
  // The form of schemas/hca-topology-1.schema.json, which --topology reads.
  if (options.json !== undefined) writeOutput(options.json, jsonText(topology));
}

/** Counts, hosts that are not joined, and how many switches the routes pass. */
function topologySentences(topology: Topology): string[] {
  const hostCount = hostsOf(topology).length;
  const switchCount = switchesOf(topology).length;
  const counts = [
    countedText(hostCount, 'host'),
    countedText(switchCount, 'switch', 'switches'),
    countedText(topology.links.length, 'cable'),
  ];
  const lengths = pathLengths(topology);
  return [
    `${counts.join(', ')}.`,
    ...(switchCount === 0 ? [`Cables: ${topologyText(topology)}.`] : passedSentences(lengths)),
    ...forwardingSentences(topology),
    ...apartSentences(lengths.length, hostCount * (hostCount - 1)),
  ];
}

/** Switches with a way of forwarding of their own, if any. */
function forwardingSentences(topology: Topology): string[] {
  const modes = Object.groupBy(
    switchesOf(topology).filter((node) => topology.nodes[node]!.forwarding !== undefined),
    (node) => topology.nodes[node]!.forwarding!,
  );
  const named = Object.entries(modes).map(([mode, nodes]) => `${nodes.join(', ')} (${mode})`);
  return named.length === 0 ? [] : [`Switches with their own forwarding mode: ${named.join('; ')}.`];
}

/** @param lengths number of switches between each ordered pair of joined hosts */
function passedSentences(lengths: readonly number[]): string[] {
  if (lengths.length === 0) return [];
  const [least, most] = [Math.min(...lengths), Math.max(...lengths)];
  const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
  const passed =
    least === most
      ? `${countedText(most, 'switch', 'switches')} between any two hosts`
      : `${least} to ${most} switches, ${mean.toFixed(2)} on average over all ordered pairs of hosts`;
  return [`A packet passes ${passed} that are joined, by the fewest links (machine.routing=min-hop).`];
}

/** Says how many ordered pairs are not joined, if any. */
function apartSentences(joined: number, pairs: number): string[] {
  if (joined === pairs) return [];
  if (joined === 0) return ['No two hosts are joined by their first ports.'];
  return [
    `${countText(pairs - joined)} of ${countText(pairs)} ordered pairs of hosts are not joined by their first ports.`,
  ];
}

/** Number of switches between each ordered pair of hosts whose first ports a cable or switches join. */
function pathLengths(topology: Topology): number[] {
  const routes = fabricRoutesOf(topology, 'min-hop');
  const ports = hostsOf(topology).map((node) => ({ node, port: 1 }));
  return ports.flatMap((from) =>
    ports.flatMap((to) => {
      const cables = to === from ? undefined : portsOnRoute(topology, routes, from, to);
      return cables === undefined ? [] : [cables.length - 1];
    }),
  );
}
