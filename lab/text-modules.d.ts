/** The text of a source, as the build of the lab and Vite import it. */
declare module '*?raw' {
  const text: string;
  export default text;
}
