import { expect, it } from 'vitest';
import { checkedTopology } from '../../machine/topology/index.ts';
import { topologyDrawing } from './topology-drawing.ts';

it('draws switches that no host reaches, with the cable between them', () => {
  const link = (left: number, leftPort: number, right: number, rightPort: number) => ({
    ends: [
      { node: left, port: leftPort },
      { node: right, port: rightPort },
    ] as const,
  });
  const kinds = ['host', 'host', 'switch', 'switch', 'switch'] as const;
  const nodes = kinds.map((kind) => ({ kind }));
  const topology = checkedTopology({ nodes, links: [link(0, 1, 2, 1), link(1, 1, 2, 2), link(3, 1, 4, 1)] });
  const drawing = topologyDrawing(topology).text;
  for (const name of ['H0', 'H1', 'S2', 'S3', 'S4']) expect(drawing).toContain(`>${name}<`);
  expect(drawing).toContain('node 3, port 1 to node 4, port 1');
});
