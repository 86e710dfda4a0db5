/** Location of the built-in programs' modules: TypeScript in the repository, JavaScript in the package. */
const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js';

export const programUrl = (name: string): URL => new URL(`../workloads/${name}${ending}`, import.meta.url);
