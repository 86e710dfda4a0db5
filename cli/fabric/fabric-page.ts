/** A run of `hca fabric`, and a topology, as pages. */
import type { FabricRow } from '../../experiments/runs/fabric-run.ts';
import { type Html, html, type PageHead, pageOf, tableSection } from '../../explain/page/index.ts';
import type { Topology } from '../../machine/topology/index.ts';
import { flowCells, flowHead, outputCells, outputHead } from './fabric-text.ts';
import { topologyDrawing } from './topology-drawing.ts';

export const fabricPage = (head: PageHead, row: FabricRow, topology: Topology): string =>
  pageOf(head, [
    drawingSection(topology),
    ...(row.flows.length === 0
      ? []
      : [
          tableSection({
            title: 'Flows, in the order of the pattern',
            head: flowHead,
            rows: row.flows.map(flowCells),
          }),
        ]),
    tableSection({
      title: 'Outputs of the switches, in shares of the time of the traffic',
      head: outputHead,
      rows: row.outputs.map((output) => outputCells(output, row.report)),
    }),
  ]);

export const topologyPage = (head: PageHead, topology: Topology): string =>
  pageOf(head, [drawingSection(topology)]);

const drawingSection = (topology: Topology): Html =>
  html`<section><h2>Hosts and switches</h2>${topologyDrawing(topology)}<p>H is a host, S a switch. The title of a line names the ports of its cable.</p></section>`;
