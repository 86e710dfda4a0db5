/** Makes data constant, with everything it refers to: a write to it throws, and an image of a machine does not store it (object-image.ts). */
export function immutable<T extends object>(data: T): T {
  Object.freeze(data);
  const members: readonly unknown[] = Object.values(data);
  for (const member of members)
    if (typeof member === 'object' && member !== null && !Object.isFrozen(member)) immutable(member);
  return data;
}
