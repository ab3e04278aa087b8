"""A made-up class that hands in: right files, files after a stage, the labs' wrong answers, and some that harm.

    python tests/cpu/made_up_class.py FOLDER 30 first_kernel,transpose,paged,roofline,plain_attention,reduction

writes FOLDER/roster.csv and FOLDER/hand_ins/, and FOLDER/expected.json says what each must be refused for.
"""

import json
import random
import sys
import zipfile
from pathlib import Path

from course_labs.lab import find_labs
from course_labs.wrong_answers import wrong_answers

ROOT = Path(__file__).resolve().parents[2]
# A file that takes for ever, one that fills the disk, one that prints a verdict, one that looks for the grader's pipe.
HARM = {
    "hangs": "while True:\n    pass\n",
    "floods": "f = open('much', 'wb')\nwhile True:\n    f.write(bytes(2**24))\n    f.flush()\n",
    "says right": """import json, os
said = "right: correct on every size tried\\nalone: right, and the lab is done"
print(said, flush=True)
os.write(1, said.encode())
for fd in range(3, 64):
    try:
        os.write(fd, json.dumps({"found": "right", "stages": 5, "alone_right": True}).encode() + b"\\n")
    except OSError:
        pass
os._exit(0)
""",
}


def write_class(folder, count, names, doors=("numpy", "python"), harm=HARM, seed=1):
    """Write a class; returns what each student's files must be found: (student, lab) to a word, "" for anything."""
    labs = find_labs(ROOT)
    draw = random.Random(seed)
    students = [f"s{number:02d}" for number in range(count)]
    expected = {}
    for place, student in enumerate(students):
        files = {}
        for name in names:
            lab = labs[name]
            door = draw.choice([door for door in lab.doors if door in doors])
            suffix = lab.solution(door).suffix
            if place < len(harm) and name == names[0]:
                what, text = list(harm.items())[place]
                text, found = f"# {what}\n{text}", {"hangs": "timed out"}.get(what, "")
            elif (kind := draw.random()) < 0.4:
                text, found = lab.solution(door).read_text(), "right"
            elif kind < 0.6:
                text, found = lab.snapshot(door, draw.randrange(len(lab.stages) + 1)).read_text(), ""
            else:
                wrong = [
                    one for one in wrong_answers(lab)
                    if one.name.endswith(suffix) and not one.gpu_only and lab.door_of(Path(one.name)) == door
                ]  # fmt: skip
                one = draw.choice(wrong)
                text, found = one.text, one.refused_for
            expected[student, name] = found
            files[lab.student_file(door)] = text
        if place % 2:
            folder_of = folder / "hand_ins" / f"{student}_{place}_file"
            for name, text in files.items():
                (folder_of / "work").mkdir(parents=True, exist_ok=True)
                (folder_of / "work" / name).write_text(text)
        else:
            (folder / "hand_ins").mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(folder / "hand_ins" / f"{student}.zip", "w") as packed:
                for name, text in files.items():
                    packed.writestr(f"my_labs/{name}", text)
    roster = "".join(f"{student},Student {student}\n" for student in students)
    (folder / "roster.csv").write_text(f"student,name\n{roster}")
    return expected


if __name__ == "__main__":
    to, how_many, which = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")
    made = write_class(
        to, how_many, which, tuple(sys.argv[4].split(",")) if len(sys.argv) > 4 else ("numpy", "python")
    )
    (to / "expected.json").write_text(
        json.dumps({"/".join(key): word for key, word in made.items()}, indent=1)
    )
