/** Modules that import each other in a cycle. */

/** @param imports the modules that each module imports. @returns those that, by way of others, import themselves */
export function modulesInCycles(imports: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const reaches = (from: string, wanted: string): boolean => {
    const seen = new Set<string>();
    const left = [...(imports.get(from) ?? [])];
    for (let module = left.pop(); module !== undefined; module = left.pop()) {
      if (module === wanted) return true;
      if (seen.has(module)) continue;
      seen.add(module);
      left.push(...(imports.get(module) ?? []));
    }
    return false;
  };
  return new Set([...imports.keys()].filter((module) => reaches(module, module)));
}
