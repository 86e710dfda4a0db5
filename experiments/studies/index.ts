/** Interface of this room: see README.md. */
import { contexts, iommu, mtt } from './caches.ts';
import { collisions, dcqcn, loss, recoveries } from './ethernet-fabrics.ts';
import { allReduce, incast, mesh, routes, tail } from './fabrics.ts';
import { generations, tags } from './links.ts';
import { parameterServer } from './parameter-server.ts';
import { inline, postLists } from './posting.ts';
import { scale } from './scale.ts';
import { moderation, sides } from './software.ts';
import type { Study } from './study.ts';
import { transports } from './transports.ts';

export { studyMarkdown } from './markdown.ts';
export { type Study, StudyFigures } from './study.ts';

/** All studies, in listing order. */
export const studies: readonly Study[] = [
  inline,
  postLists,
  mtt,
  contexts,
  moderation,
  generations,
  tags,
  iommu,
  sides,
  scale,
  incast,
  loss,
  recoveries,
  routes,
  collisions,
  dcqcn,
  mesh,
  transports,
  tail,
  allReduce,
  parameterServer,
];
